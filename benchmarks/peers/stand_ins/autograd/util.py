"""The check that test_util has replaced."""
from autograd.test_util import check_grads


def quick_grad_check(fun, arg0, extra_args=()):
    check_grads(fun, modes=["rev"], order=1)(arg0, *extra_args)
