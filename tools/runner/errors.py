"""The one exception of the runner: what a user can act on."""


class RunnerError(Exception):
    """Something about a bundle, an option or a machine that is wrong; the text names it and what would fix it."""
