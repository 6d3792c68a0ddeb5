"""Slow, literal references for the exactness tests; nothing here imports boscage.

``arrays``            what an exported tree is, and how to walk it
``mondrian_boxes``    sampling and extending Mondrian trees by boxes (Algorithms 5.1-5.10, 6.1-6.4)
``ikn``               interpolated Kneser-Ney posterior and prediction (Algorithms 5.3-5.8)
``gaussian_bp``       the hierarchical Gaussian posterior by dense linear algebra (section 6.3)
``law``               statistics of sampled trees whose law is known, and the tests of them
``checks``            every invariant of an exported tree
"""
