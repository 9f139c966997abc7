"""scipy.linalg, for programs that have imported it."""
import numpy as np
import scipy.linalg

from gradscribe.ast_transform.core.rule import general


@general(scipy.linalg.inv, rewrite=True)
class inv:
    def primal(a):
        return np.linalg.inv(a)


@general(scipy.linalg.det, rewrite=True)
class det:
    def primal(a):
        return np.linalg.det(a)
