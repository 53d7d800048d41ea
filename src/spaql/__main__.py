"""`python -m spaql` is `spaql`."""

from spaql.cli import main

main(prog_name="spaql")
