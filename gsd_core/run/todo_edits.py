"""Adds and completes todos, with the project's lock held: by a command, or by the run that is under way."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from gsd_core.files import inode_below, remove_below, write_below
from gsd_core.git import Git
from gsd_core.planning.markdown import read_text
from gsd_core.planning.todos import (
    FOLDER,
    STATE,
    Todo,
    completed_text,
    find_todo,
    new_todo,
    state_with_todos,
)
from gsd_core.sanitize import clip, safe_text


async def edit_todos(
    root: Path, asked: Mapping[str, Any], *, at: datetime, git: Git, docs: bool
) -> tuple[Todo, str]:
    """Add a todo (``text``, ``area``) or complete one (``done``), and commit it if *docs*.

    Return the todo and the commit, empty if there is none. Doing it again after a kill has no second effect:
    STATE.md only repeats what the folder contains.
    """
    if done := str(asked.get("done") or ""):
        target = f"{FOLDER}/completed/{done}.md"
        todo = Todo(id=done, title=done)
        if inode_below(root, todo.path) or not inode_below(root, target):
            todo = find_todo(root, done)
            target = f"{FOLDER}/completed/{todo.id}.md"
            text = completed_text(read_text(root, todo.path), at.date().isoformat())
            write_below(root, target, text.encode())
            remove_below(root, todo.path)
        paths, subject = [todo.path, target], f"docs: complete todo - {todo.title}"
    else:
        text = safe_text(str(asked.get("text") or ""))
        todo, file = new_todo(root, text, area=str(asked.get("area") or ""), at=at)
        write_below(root, todo.path, file.encode())
        paths, subject = [todo.path], f"docs: capture todo - {todo.title}"
    if (state := state_with_todos(root)) is not None:
        write_below(root, STATE, state.encode())
        paths.append(STATE)
    subject = clip(safe_text(subject, multiline=False), 120)
    return todo, await git.commit(paths, subject, trailers={}, verify=False) if docs else ""
