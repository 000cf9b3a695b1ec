/** What plugins show about a project: text, figures and tables. They are data; nothing of them is HTML. */

import { useRef, type ReactElement } from "react";

import { addressOf } from "../api/address";
import type { Panel } from "../api/types";
import { useIsSeen, useResource } from "../state/hooks";
import { Markdown } from "./markdown";

/** Read only while somebody sees their place: a process that imports every plugin makes them. */
export function Panels({ session }: { session: string }): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const { data } = useResource(addressOf("/sessions/{session}/panels", { session }), useIsSeen(place));
  return (
    <div ref={place} className="panels">
      {data?.panels.map((panel) => (
        <PanelView key={`${panel.plugin} ${panel.name}`} panel={panel} />
      ))}
      {data?.failures.map((failure) => (
        <p key={failure.plugin} className="stale">
          {failure.plugin}: {failure.reason}
        </p>
      ))}
    </div>
  );
}

function PanelView({ panel }: { panel: Panel }): ReactElement {
  const figures = Object.entries(panel.figures);
  return (
    <section aria-label={panel.title}>
      <h2>
        {panel.title} <span className="muted">{panel.plugin}</span>
      </h2>
      {figures.length > 0 && (
        <dl className="figures few">
          {figures.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="numeric">{value}</dd>
            </div>
          ))}
        </dl>
      )}
      {panel.text && <Markdown text={panel.text} />}
      {panel.rows.length > 0 && (
        <div className="table-scroll" tabIndex={0} role="region" aria-label={`table of ${panel.title}`}>
          <table>
            <thead>
              <tr>
                {panel.columns.map((column) => (
                  <th key={column} scope="col">
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {panel.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
