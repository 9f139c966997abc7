import numpy as np


def grad_two_that_may_raise(A, b):
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        raised = True
    else:
        raised = False
    if raised:
        y = b * 2.0
    else:
        L = np.linalg.cholesky(A)
        try:
            np.linalg.solve(L, b)
        except np.linalg.LinAlgError:
            raised_1 = True
        else:
            raised_1 = False
        y = b * 2.0 if raised_1 else np.linalg.solve(L, b)

    # return np.sum(y * y)
    dy = 2 * y
    if raised:
        return np.zeros_like(A), 4.0 * y
    if raised_1:
        # y = b * 2.0
        db = 4.0 * y
        # y = np.linalg.solve(L, b)
        dL = np.zeros_like(L)
    else:
        # y = np.linalg.solve(L, b)
        db = np.linalg.solve(L.T, dy)
        dL = -np.outer(db, y)
    # L = np.linalg.cholesky(A)
    prod_L = L.T @ dL
    solve_transpose_L = np.linalg.solve(L.T,
                                        np.linalg.solve(L.T,
                                                        np.tril(prod_L) + np.tril(prod_L, -1).T).T)
    return (np.tril(solve_transpose_L) + np.tril(solve_transpose_L, -1)) / 2, db
