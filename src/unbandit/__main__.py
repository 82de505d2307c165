"""`python -m unbandit` is the command `unbandit`."""

from unbandit.cli import main

if __name__ == "__main__":
    main()
