"""Small clusters of two workers of one thread, each a process of its own."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

pytest.importorskip("distributed")

import distributed

from boscage.dask import _base, _shares


@contextmanager
def _two_workers():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def client():
    """One cluster for all tests of a process."""
    with _two_workers() as client:
        yield client


@pytest.fixture
def losing_client():
    """A cluster of which one worker dies when it begins its first share, cells, chain or island."""
    with _two_workers() as client:
        doomed = max(client.run(os.getpid))
        # A lambda travels by value.
        client.run(
            lambda: setattr(_shares, "check_version", lambda _: os.kill(os.getpid(), 9)),
            workers=[doomed],
        )
        yield client


@pytest.fixture
def owners(monkeypatch):
    """Sets how many owners of cells there are, whatever the number of workers is."""
    opened = _base.open_cluster

    def set_number(n):
        def open_cluster(client):
            client, workers = opened(client)
            return client, [workers[i % len(workers)] for i in range(n)]

        monkeypatch.setattr(_base, "open_cluster", open_cluster)

    return set_number
