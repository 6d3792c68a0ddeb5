"""The experiments of the thesis' chapters 3 to 6, and a report of how we compare.

``python -m benches.papers [NAME ...] [--quick] [--seeds N]`` from the root of the repository.

Each experiment is a file of its own, ``ch<chapter>_<name>.py``, with a ``TITLE``, its ``SETTINGS``
as data, and ``run(section, effort)``, which adds text, tables, figures and claims to its section of
the report. Experiments use the public API only.
"""
