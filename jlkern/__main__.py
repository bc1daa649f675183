"""`python -m jlkern`: the command line."""

from jlkern.cli import main

if __name__ == "__main__":
    main(prog_name="jlkern")
