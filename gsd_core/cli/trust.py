"""``gsd trust``: shows what a project wants that needs trust, and trusts it or forgets it."""

from __future__ import annotations

import click

from .global_options import global_options_of, gsd_command
from .output import counted, json_flag, print_json, print_line, warn
from .streams import can_ask


@gsd_command("trust", "gsd trust --show", "gsd trust", last=json_flag)
@click.option(
    "--show", is_flag=True, help="list what the project wants and whether it is trusted; ask nothing"
)
@click.option("--revoke", is_flag=True, help="forget that the project is trusted")
def command(ctx: click.Context, show: bool, revoke: bool, as_json: bool) -> None:
    """Trust the plugins, settings and commands that the project brings.

    They are listed, and you are asked once at the terminal. Trust is remembered by content, outside of the
    project: another clone of the same content is trusted too, and after any change you are asked again.
    """
    from gsd_core.settings import trust_folder
    from gsd_core.trust import WANT, TrustStore

    from .plugin_loading import loaded_plugins
    from .project import project_root, refuse_agents_at
    from .project_trust import as_left_by_people, ask, examine, lines_of, refuse_untrusted, remember

    if show and revoke:
        raise click.UsageError("--show and --revoke cannot be combined", ctx)
    options = global_options_of(ctx)
    root = project_root(options)
    loaded = loaded_plugins(ctx)
    if not show:
        refuse_agents_at(root, "trust a project")
        loaded = as_left_by_people(loaded, options)
    trust = examine(loaded, root)
    done = ""
    if revoke:
        number = TrustStore(trust_folder()).revoke(root, trust.wants)
        trust = examine(loaded, root)
        done = f"forgot {counted(number, 'record')} of trust" if number else "this project was not trusted"
    elif not show and trust.new:
        if not can_ask():
            refuse_untrusted(trust)
        if not ask(trust):
            raise click.Abort
        trust = remember(trust)
        done = "trusted"
    if as_json:
        about = {"project": str(trust.root), "trusted": not trust.new}
        wants = [{**WANT.dump(want), "trusted": want.digest in trust.trusted} for want in trust.wants]
        refused = [{"name": each.name, "origin": each.origin} for each in trust.consent]
        print_json({**about, "wants": wants, "refused": refused})
        return
    if show:
        for want, line in zip(trust.wants, lines_of(trust.wants), strict=True):
            print_line(f"{'trusted' if want.digest in trust.trusted else 'not trusted'}: {line}")
    warn(
        f"{one.origin} sets {one.name}: consent cannot come from the project's files" for one in trust.consent
    )
    if done:
        print_line(done)
    elif not trust.wants:
        print_line("this project wants nothing that needs trust")
    elif not trust.new:
        print_line(f"this project is trusted ({counted(len(trust.wants), 'item')})")
    else:
        print_line(f"this project is not trusted ({counted(len(trust.new), 'item')})")
