/** The screen of a session: what it printed is replayed, then live. Loaded on demand, because the emulator is large. */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, type ReactElement } from "react";

import type { Session } from "../api/types";
import { useHub } from "../state/hooks";

/** How much of the past is replayed, in bytes. */
const REPLAY_BYTES = 262_144;
/** Dark in both themes, as programs expect; each color is readable on the background. */
const THEME = {
  background: "#14171c",
  foreground: "#eef1f5",
  cursor: "#d9dde3",
  selectionBackground: "#3a5a80",
  black: "#5c6370",
  red: "#ff8a80",
  green: "#7fd88f",
  yellow: "#e6c56a",
  blue: "#82b1ff",
  magenta: "#d7a1f9",
  cyan: "#6fd3d8",
  white: "#d9dde3",
  brightBlack: "#9aa2ae",
  brightRed: "#ffab9f",
  brightGreen: "#a3ecae",
  brightYellow: "#f5da8f",
  brightBlue: "#a8c9ff",
  brightMagenta: "#e6c1ff",
  brightCyan: "#97e6e9",
  brightWhite: "#ffffff",
};
const FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

interface Props {
  session: Session;
  /** In pixels. */
  fontSize: number;
  /** Whether keys go to the session. */
  isTyping: boolean;
  onLeave: () => void;
  onNote?: (note: string) => void;
}

export function TerminalScreen({ session, fontSize, isTyping, onLeave, onNote = () => undefined }: Props): ReactElement {
  const hub = useHub();
  const box = useRef<HTMLDivElement>(null);
  const terminal = useRef<Terminal | null>(null);
  const fit = useRef<(() => void) | null>(null);
  // The terminal is made once; what it calls is what was given last.
  const now = useRef({ isTyping, onLeave, onNote });
  now.current = { isTyping, onLeave, onNote };

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    allowStyles();
    const screen = new Terminal({
      fontFamily: FONT,
      fontSize,
      scrollback: 20_000,
      cursorBlink: false,
      convertEol: false,
      disableStdin: false,
      theme: THEME,
      // Links in what an agent printed are text.
      linkHandler: { activate: () => undefined },
    });
    // What a session prints may not reach the clipboard or the window's title.
    for (const code of [0, 1, 2, 8, 52]) screen.parser.registerOscHandler(code, () => true);
    const fitting = new FitAddon();
    screen.loadAddon(fitting);
    screen.open(element);
    terminal.current = screen;

    // Answers that the emulator itself gives (cursor position and the like) come through onData, too: only keys
    // that a person pressed while typing is on are sent.
    const keys = screen.onData((data) => {
      if (now.current.isTyping && !hub.sendInput(session.id, encode(data))) now.current.onNote("not sent: no connection");
    });
    screen.attachCustomKeyEventHandler((event) => {
      if (event.key === "Escape" && event.ctrlKey) {
        if (event.type === "keydown") now.current.onLeave();
        return false;
      }
      return now.current.isTyping;
    });
    const resize = (): void => {
      if (!element.clientWidth) return;
      fitting.fit();
      if (now.current.isTyping) hub.resize(session.id, screen.cols, screen.rows);
    };
    fit.current = resize;
    const observer = new ResizeObserver(resize);
    observer.observe(element);

    let cursor = -1;
    const leave = hub.followTerminal(session.id, -REPLAY_BYTES, (chunk) => {
      if (chunk.dropped && cursor >= 0) now.current.onNote("some output was skipped");
      if (cursor >= 0 && chunk.start > cursor) screen.reset();
      const data = decode(chunk.data);
      // After a reconnect, the server may send again what is there.
      const known = cursor >= 0 ? Math.max(0, Math.min(data.length, cursor - chunk.start)) : 0;
      if (known < data.length) screen.write(data.subarray(known));
      cursor = Math.max(cursor, chunk.end);
    });
    return () => {
      leave();
      keys.dispose();
      observer.disconnect();
      screen.dispose();
      terminal.current = null;
    };
    // The font's size is changed below, without a new terminal.
  }, [hub, session.id]);

  useEffect(() => {
    if (!terminal.current) return;
    terminal.current.options.fontSize = fontSize;
    fit.current?.();
  }, [fontSize]);
  useEffect(() => {
    if (isTyping) {
      terminal.current?.focus();
      fit.current?.();
    }
  }, [isTyping]);

  return <div className={isTyping ? "terminal typing" : "terminal"} ref={box} />;
}

let isAllowed = false;

/** xterm.js creates style elements, which the policy of the page refuses unless they have its nonce. */
function allowStyles(): void {
  const nonce = document.querySelector<HTMLScriptElement>("script[nonce]")?.nonce;
  if (isAllowed || !nonce) return;
  isAllowed = true;
  const create = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const element = create(name, options);
    if (name.toLowerCase() === "style") element.nonce = nonce;
    return element;
  }) as typeof document.createElement;
}

function encode(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function decode(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
