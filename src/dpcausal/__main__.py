"""`python -m dpcausal` is the command `dpcausal`."""

from dpcausal.cli import app

if __name__ == "__main__":
    app(prog_name="dpcausal")
