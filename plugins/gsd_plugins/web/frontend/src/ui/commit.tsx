/** Commits as a list; each opens its diff in the side panel. */

import { useState, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { Commit } from "../api/types";
import { dateAndTime, shortSha } from "../lib/format";
import { useResource } from "../state/hooks";
import { Loaded, Panel } from "./common";
import { Patch } from "./patch";

export function CommitLink({ session, sha }: { session: string; sha: string }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="link mono sha" onClick={() => setOpen(true)}>
        {shortSha(sha)}
      </button>
      {isOpen && <CommitPanel session={session} sha={sha} onClose={() => setOpen(false)} />}
    </>
  );
}

function CommitPanel({ session, sha, onClose }: { session: string; sha: string; onClose: () => void }): ReactElement {
  const found = useResource(addressOf("/sessions/{session}/commits/{sha}", { session, sha }));
  return (
    <Panel title={`Commit ${shortSha(sha)}`} onClose={onClose}>
      <Loaded from={found} lines={8} shape="text">
        {(commit) => (
          <>
            <p>
              <strong>{commit.subject}</strong>
            </p>
            <p className="muted">
              {[commit.step, commit.task && `task ${commit.task}`, dateAndTime(commit.at)].filter(Boolean).join(" · ")}
            </p>
            <Patch patch={commit.patch} truncated={commit.truncated} />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

export function CommitList({ session, commits }: { session: string; commits: Commit[] }): ReactElement {
  if (!commits.length) return <p className="muted">No commits yet.</p>;
  return (
    <ul className="commits">
      {[...commits].reverse().map((commit) => (
        <li key={commit.sha}>
          <CommitLink session={session} sha={commit.sha} />
          <span>{commit.subject}</span>
          <span className="muted numeric">{dateAndTime(commit.at)}</span>
        </li>
      ))}
    </ul>
  );
}
