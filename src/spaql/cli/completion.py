"""`spaql completion`: shell completion of commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from spaql.cli.arguments import Choice

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=Choice(_SHELLS), metavar="SHELL")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the lines that teach SHELL, which is bash, zsh or fish, to complete spaql.

    It then completes commands, options and what they take: environments, algorithms, files.

    \b
    To have it in every new shell:
      echo 'eval "$(spaql completion bash)"' >> ~/.bashrc
      echo 'eval "$(spaql completion zsh)"' >> ~/.zshrc
      spaql completion fish > ~/.config/fish/completions/spaql.fish
    """
    shell_completion = get_completion_class(shell)
    assert shell_completion is not None
    click.echo(shell_completion(ctx.find_root().command, {}, "spaql", "_SPAQL_COMPLETE").source())
