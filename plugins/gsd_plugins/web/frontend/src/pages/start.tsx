/** Start a run: an idea as text or file, or the continuation of a project. */

import { useRef, useState, type FormEvent, type ReactElement } from "react";

import { addressOf, type Body } from "../api/address";
import { folderName } from "../lib/format";
import { go, runPath } from "../lib/route";
import { readDraft, writeDraft } from "../state/drafts";
import { useHub, useResource } from "../state/hooks";

const MODES = [
  ["idea", "New idea", "Write the idea here."],
  ["idea_file", "Idea file", "The idea is a file on the server's machine."],
  ["resume", "Resume", "Continue the project's last run."],
] as const;
const DEPTHS = ["quick", "standard", "comprehensive"] as const;
const DRAFT = "start";
type Mode = (typeof MODES)[number][0];

export function StartPage(): ReactElement {
  const hub = useHub();
  const [draft] = useState(() => readDraft<Record<string, string>>(DRAFT, {}));
  const [mode, setMode] = useState<Mode>(() => MODES.find(([name]) => name === draft.mode)?.[0] ?? "idea");
  const [isSending, setSending] = useState(false);
  const formElement = useRef<HTMLFormElement>(null);
  const project = useRef<HTMLInputElement>(null);
  const projects = [...new Set([...hub.sessions].reverse().map((session) => session.project))];
  const plugins = useResource(addressOf("/plugins")).data?.plugins ?? [];
  const agents = plugins.filter((plugin) => plugin.hooks.includes("gsd_run_agent")).map((plugin) => plugin.name);
  const keep = (chosen: Mode): void => {
    if (formElement.current) writeDraft(DRAFT, { ...draft, ...Object.fromEntries(new FormData(formElement.current)), mode: chosen });
  };
  const canStart = hub.scope === "control" && !isSending;

  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = (name: string): string => String(form.get(name) ?? "").trim();
    const body: Body<"/sessions", "post"> = { project: given("project") };
    if (mode === "resume") body.resume = true;
    else body[mode] = mode === "idea" ? String(form.get("idea") ?? "") : given("idea_file");
    for (const name of ["phases", "agent", "model", "budget", "tokens", "turns"] as const)
      if (given(name)) body[name] = given(name);
    const depth = DEPTHS.find((one) => one === given("depth"));
    if (depth) body.depth = depth;
    setSending(true);
    const here = location.hash;
    const started = await hub.act(() => hub.client.post("/sessions", {}, body));
    setSending(false);
    if (!started) return;
    writeDraft(DRAFT, undefined);
    if (location.hash === here) go(runPath(started.session.id));
    else hub.notify("info", `Started session ${started.session.id}`);
  };

  return (
    <>
      <div className="page-head">
        <h1>Start a run</h1>
      </div>
      <form className="start" ref={formElement} onSubmit={(event) => void submit(event)} onChange={() => keep(mode)}>
        <div className="chips" role="group" aria-label="what to run">
          {MODES.map(([value, word]) => (
            <button key={value} type="button" className="chip" aria-pressed={mode === value} onClick={() => (setMode(value), keep(value))}>
              {word}
            </button>
          ))}
        </div>
        <p className="muted">{MODES.find(([value]) => value === mode)?.[2]}</p>
        <label>
          Project folder
          <input ref={project} name="project" defaultValue={draft.project} required pattern="/.*" title="an absolute path" placeholder="/home/you/project" list="projects" spellCheck={false} />
        </label>
        {projects.length > 0 && (
          <div className="chips" role="group" aria-label="recent projects">
            {projects.slice(0, 6).map((path) => (
              <button
                key={path}
                type="button"
                className="chip"
                title={path}
                onClick={() => {
                  if (project.current) project.current.value = path;
                  keep(mode);
                }}
              >
                {folderName(path)}
              </button>
            ))}
          </div>
        )}
        <datalist id="projects">
          {projects.map((project) => (
            <option key={project} value={project} />
          ))}
        </datalist>
        {mode === "idea" && (
          <label>
            Idea
            <textarea name="idea" defaultValue={draft.idea} required rows={10} maxLength={500_000} placeholder={"# Greeter\n\nA small terminal program that …"} />
          </label>
        )}
        {mode === "idea_file" && (
          <label>
            Idea file
            <input name="idea_file" defaultValue={draft.idea_file} required pattern="/.*" title="an absolute path" placeholder="/home/you/idea.md" spellCheck={false} />
          </label>
        )}
        <details>
          <summary>Options</summary>
          <div className="fields">
            <label>
              Budget in dollars
              <input name="budget" inputMode="decimal" pattern="\d+(\.\d+)?" placeholder="5" />
            </label>
            <label>
              Budget in tokens
              <input name="tokens" inputMode="numeric" pattern="[1-9]\d*" placeholder="5000000" />
            </label>
            <label>
              Budget in turns
              <input name="turns" inputMode="numeric" pattern="[1-9]\d*" placeholder="500" />
            </label>
            <label>
              Phases
              <input name="phases" placeholder="1-3" />
            </label>
            <label>
              Agent
              <select name="agent">
                <option value="">as set</option>
                {agents.map((name) => (
                  <option key={name} value={name}>
                    {name === "rehearsal" ? "rehearsal: no model, no cost" : name}
                  </option>
                ))}
              </select>
            </label>
            <label>
              Model
              <input name="model" spellCheck={false} />
            </label>
            <label>
              Depth
              <select name="depth">
                <option value="">as set</option>
                {DEPTHS.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          </div>
        </details>
        <p className="muted">
          Trust and consent (a project's own plugins, no sandbox, yes to all) can only be given in a terminal.
        </p>
        <div className="answer-row">
          <button type="submit" className="primary" disabled={!canStart}>
            {isSending ? "Starting …" : "Start"}
          </button>
          {hub.scope === "read" && <span className="muted">This token may only watch.</span>}
        </div>
      </form>
    </>
  );
}
