/** The plugins of this installation: what they do, whether they work, and what they failed at last. */

import type { ReactElement } from "react";

import { addressOf } from "../api/address";
import { useHub, useResource } from "../state/hooks";
import { About, Empty, Loaded } from "../ui/common";
import { Inline } from "../ui/markdown";
import { Status } from "../ui/status";

export function PluginsPage(): ReactElement {
  const hub = useHub();
  const found = useResource(addressOf("/plugins"));
  return (
    <>
      <div className="page-head">
        <h1>Plugins</h1>
      </div>
      <Loaded from={found} lines={8} shape="rows">
        {({ plugins }) =>
          plugins.length ? (
            <ul className="plugins">
              {plugins.map((plugin) => (
                <li key={`${plugin.source} ${plugin.name}`} data-item="" tabIndex={-1}>
                  <header>
                    <strong>{plugin.name}</strong>
                    <span className="muted">
                      {[plugin.source === "default" ? "built in" : plugin.source, plugin.distribution, plugin.version]
                        .filter(Boolean)
                        .join(" · ")}
                    </span>
                    <span className="push">
                      <Status state={plugin.status} />
                    </span>
                  </header>
                  <p>
                    <Inline text={(plugin.about ?? "").replaceAll("``", "`")} />
                  </p>
                  {plugin.reason && <p className="muted">{plugin.reason}</p>}
                  {plugin.last_failures.length > 0 && (
                    <details>
                      <summary className="tone-bad">Last failures: {plugin.last_failures.length}</summary>
                      <pre tabIndex={0}>{JSON.stringify(plugin.last_failures, null, 2)}</pre>
                    </details>
                  )}
                  <p className="hooks mono muted">{plugin.hooks.join("  ")}</p>
                </li>
              ))}
            </ul>
          ) : (
            <Empty title="No plugins" />
          )
        }
      </Loaded>
      <About version={hub.server?.version} />
    </>
  );
}
