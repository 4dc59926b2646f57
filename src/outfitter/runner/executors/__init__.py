"""Who executes a run: one file for each kind of executor, behind the shape of ``ports.Executor``."""
