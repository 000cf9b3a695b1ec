/** A commit's patch, file by file; added and removed lines keep their signs, so color is not all. */

import type { ReactElement } from "react";

interface FilePatch {
  name: string;
  added: number;
  removed: number;
  lines: string[];
}

export function filesOf(patch: string): FilePatch[] {
  const files: FilePatch[] = [];
  let isHeader = false;
  for (const line of patch.split("\n")) {
    if (line.startsWith("diff --git ")) {
      const name = / b\/(.*)$/.exec(line)?.[1] ?? line.slice(11);
      files.push({ name, added: 0, removed: 0, lines: [] });
      isHeader = true;
      continue;
    }
    const file = files.at(-1);
    if (!file) continue;
    if (line.startsWith("@@")) isHeader = false;
    if (isHeader) {
      if (/^(new file|deleted file|rename|similarity|Binary)/.test(line)) file.lines.push(line);
      continue;
    }
    if (line.startsWith("+")) file.added += 1;
    if (line.startsWith("-")) file.removed += 1;
    file.lines.push(line);
  }
  return files;
}

export function Patch({ patch, truncated }: { patch: string; truncated: boolean }): ReactElement {
  const files = filesOf(patch);
  return (
    <div className="patch">
      {files.map((file, index) => (
        <details key={file.name} open={index < 8 && file.lines.length < 400}>
          <summary>
            <code>{file.name}</code>
            <span className="numeric">
              <span className="tone-good">+{file.added}</span> <span className="tone-bad">−{file.removed}</span>
            </span>
          </summary>
          <pre tabIndex={0}>
            {file.lines.map((line, number) => (
              <span key={number} className={classOf(line)}>
                {line || " "}
              </span>
            ))}
          </pre>
        </details>
      ))}
      {files.length === 0 && <p className="muted">This commit changes no file.</p>}
      {truncated && <p className="muted">The rest of the patch is left out; git show has all of it.</p>}
    </div>
  );
}

function classOf(line: string): string {
  if (line.startsWith("+")) return "line added";
  if (line.startsWith("-")) return "line removed";
  if (line.startsWith("@@")) return "line hunk";
  return /^[ \\]/.test(line) || line === "" ? "line" : "line meta";
}
