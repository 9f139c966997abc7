"""Ordinary differential equations: gs.optim.odeint."""
import gradscribe as gs


def odeint(func, y0, t, args=(), rtol=1e-8, atol=1e-8):
    return gs.optim.odeint(func, y0, t, *args, rtol=rtol, atol=atol)
