/**
 * The WebSocket: one connection for the whole page, made again when it breaks.
 *
 * What makes it lose nothing: every change has a number, a new connection continues after the last number that
 * was seen, and if the server cannot do that (or a number is missing), everything shown is read again.
 */

import type { Change, ClientMessage, Hello, OutputChunk, Scope, ServerMessage, TerminalChunk } from "./types";

export type LinkState = "connecting" | "live" | "lost" | "refused";

export interface LinkEvents {
  state(state: LinkState): void;
  scope(scope: Scope): void;
  changes(changes: Change[]): void;
  /** Changes are missing: read again what is shown. */
  resync(): void;
  /** Sessions that were forgotten. */
  removed(sessions: string[]): void;
  output(chunk: OutputChunk): void;
  terminal(chunk: TerminalChunk): void;
  refusal(message: string, hint: string): void;
}

export interface LinkOptions {
  url: string;
  token: string;
  events: LinkEvents;
  /** Whether the token is still valid; asked after a handshake failed, because the browser hides why. */
  isRefused(): Promise<boolean>;
  open?: (url: string, protocols: string[]) => WebSocket;
}

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 10_000;
const PING_MS = 15_000;
const SILENCE_MS = 40_000;

export class Link {
  /** The number of the last change that was seen, and the server's epoch that it counts in. */
  number: number | null = null;
  epoch = "";

  private socket: WebSocket | null = null;
  private delay = FIRST_DELAY_MS;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pinger: ReturnType<typeof setInterval> | undefined;
  private heardAt = 0;
  private closed = false;
  private readonly outputs = new Set<string>();
  private readonly terminals = new Map<string, number>();

  constructor(private readonly options: LinkOptions) {}

  /** Connect, and continue after *number* of *epoch*. */
  start(epoch: string, number: number): void {
    this.closed = false;
    this.epoch = epoch;
    this.number = number;
    this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    clearInterval(this.pinger);
    this.socket?.close();
  }

  /** Try at once, because the person asked or the browser says that the network is back. */
  retryNow(): void {
    if (this.closed || this.socket?.readyState === WebSocket.OPEN) return;
    this.delay = FIRST_DELAY_MS;
    clearTimeout(this.timer);
    this.connect();
  }

  followOutput(session: string): () => void {
    this.outputs.add(session);
    this.send({ subscribe: { session, after: null, epoch: this.epoch, output: true } });
    return () => {
      this.outputs.delete(session);
      this.send({ unsubscribe: { session } });
    };
  }

  followTerminal(session: string, cursor: number): () => void {
    this.terminals.set(session, cursor);
    this.send({ terminal: { session, cursor } });
    return () => {
      this.terminals.delete(session);
      this.send({ terminal: { session, close: true } });
    };
  }

  /** Return whether the message could be sent: without a connection, keys are not kept for later. */
  send(message: ClientMessage): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  private connect(): void {
    this.options.events.state("connecting");
    const open = this.options.open ?? ((url, protocols) => new WebSocket(url, protocols));
    const previous = this.socket;
    const socket = open(this.options.url, ["gsd.v1", `gsd.token.${this.options.token}`]);
    this.socket = socket;
    previous?.close();
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      this.heardAt = Date.now();
    };
    socket.onmessage = (message) => {
      if (socket !== this.socket) return;
      this.heardAt = Date.now();
      this.receive(JSON.parse(String(message.data)) as ServerMessage);
    };
    socket.onclose = () => {
      if (socket !== this.socket || this.closed) return;
      void this.lost(wasOpen);
    };
    clearInterval(this.pinger);
    this.pinger = setInterval(() => this.checkSilence(socket), PING_MS);
  }

  /** A laptop that slept, a tunnel that is gone: nothing closes the socket, it is only silent. */
  private checkSilence(socket: WebSocket): void {
    if (socket !== this.socket || socket.readyState !== WebSocket.OPEN) return;
    if (Date.now() - this.heardAt > SILENCE_MS) {
      socket.onclose = null;
      socket.close();
      void this.lost(true);
      return;
    }
    this.send({ ping: Date.now() });
  }

  private async lost(wasOpen: boolean): Promise<void> {
    clearInterval(this.pinger);
    this.options.events.state("lost");
    if (!wasOpen && (await this.options.isRefused())) {
      this.options.events.state("refused");
      return;
    }
    if (this.closed) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.delay * (0.75 + Math.random() / 2));
    this.delay = Math.min(this.delay * 2, MAX_DELAY_MS);
  }

  private receive(message: ServerMessage): void {
    const { events } = this.options;
    if ("hello" in message) this.greet(message);
    else if ("resync" in message) {
      this.number = message.number;
      events.resync();
    } else if ("frame" in message) this.take(message.frame);
    else if ("removed" in message) events.removed(message.removed.sessions);
    else if ("output" in message) events.output(message.output);
    else if ("terminal" in message) {
      this.terminals.set(message.terminal.session, message.terminal.end);
      events.terminal(message.terminal);
    } else if ("error" in message) events.refusal(message.error.message, message.error.hint);
  }

  private greet({ hello }: Hello): void {
    this.delay = FIRST_DELAY_MS;
    this.options.events.scope(hello.scope);
    const isSame = hello.epoch === this.epoch;
    this.send({ subscribe: { session: "*", after: isSame ? this.number : hello.number, epoch: hello.epoch, output: false } });
    for (const session of this.outputs) this.followOutput(session);
    for (const [session, cursor] of this.terminals) this.send({ terminal: { session, cursor } });
    this.options.events.state("live");
    if (!isSame) {
      this.epoch = hello.epoch;
      this.number = hello.number;
      this.options.events.resync();
    }
  }

  private take(frame: Change[]): void {
    const news = frame.filter((change) => this.number === null || change.number > this.number);
    const first = news[0];
    const last = news.at(-1);
    if (!first || !last) return;
    const isComplete = this.number === null || first.number === this.number + 1;
    this.number = last.number;
    // First, so that a log reads what is missing before it takes what came after it.
    if (!isComplete) this.options.events.resync();
    this.options.events.changes(news);
  }
}
