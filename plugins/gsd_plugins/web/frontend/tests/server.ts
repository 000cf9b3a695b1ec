/** A server on the loopback interface that speaks the interface of gsd serve, for one session. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket as NodeWebSocket, WebSocketServer, type WebSocket as Peer } from "ws";

import type { Change, ClientMessage, GsdEvent, Question, ServerMessage, Session } from "../src/api/types";

export const TOKEN = "test-token";

export class TestServer {
  base = "";
  epoch = "e1";
  number = 0;
  changes: Change[] = [];
  events: GsdEvent[] = [];
  questions: Question[] = [];
  answers: { question: string; words: string }[] = [];
  refusal: { status: number; message: string } | undefined;
  subscriptions: NonNullable<ClientMessage["subscribe"]>[] = [];
  private isForgotten = false;
  private readonly peers = new Set<Peer>();
  private readonly http = createServer((request, response) => {
    const reply = (status: number, body: unknown): void => {
      response.writeHead(status, { "Content-Type": "application/json", "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*", "Access-Control-Allow-Methods": "*" });
      response.end(JSON.stringify(body));
    };
    let text = "";
    request.on("data", (data: Buffer) => (text += data.toString()));
    request.on("end", () => {
      if (request.method === "OPTIONS") reply(200, {});
      else if (request.headers.authorization !== `Bearer ${TOKEN}`)
        reply(401, { error: { code: "unauthorized", message: "the token is wrong" } });
      else this.answer(request.method ?? "", request.url ?? "", text, reply);
    });
  });
  private readonly sockets = new WebSocketServer({ server: this.http, handleProtocols: () => "gsd.v1" });

  async start(port = 0): Promise<this> {
    await new Promise<void>((done) => this.http.listen(port, "127.0.0.1", done));
    this.base = `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`;
    this.sockets.on("connection", (peer) => this.greet(peer));
    return this;
  }

  async stop(): Promise<void> {
    this.drop();
    this.sockets.close();
    this.http.closeAllConnections();
    await new Promise((done) => this.http.close(done));
  }

  /** Break every connection, as a tunnel does. */
  drop(): void {
    for (const peer of this.peers) peer.terminate();
    this.peers.clear();
  }

  session(): Session {
    return {
      id: "s1", slot: 1, agents: 2, project: "/tmp/greeter", command: ["run"], state: "running", checkpoint: null, reason: "",
      run: "r-1", exit: null, pid: 1, created_at: "2026-01-01T00:00:00Z", started_at: null, ended_at: null,
      updated_at: "2026-01-01T00:00:00Z", summary: null, problem: "",
    };
  }

  publish(name: GsdEvent["name"], step = "", data: Record<string, unknown> = {}): void {
    const event: GsdEvent = { seq: this.events.length + 1, name, at: "2026-01-01T00:00:00Z", run: "r-1", step, data };
    this.events.push(event);
    this.number += 1;
    this.changes.push({ number: this.number, session: "s1", event });
    for (const peer of this.peers) this.send(peer, this.number - 1);
  }

  /** Forget the session, as another page may ask for. */
  forget(): void {
    this.isForgotten = true;
    for (const peer of this.peers) say(peer, { removed: { sessions: ["s1"] } });
  }

  private answer(method: string, url: string, text: string, reply: (status: number, body: unknown) => void): void {
    const { pathname, searchParams } = new URL(url, this.base);
    const path = pathname.replace("/api/v1", "");
    const page = { epoch: this.epoch, number: this.number };
    const answered = /questions\/([^/]+)\/answer$/.exec(path)?.[1];
    if (method === "PUT" && answered) {
      if (this.refusal) return reply(this.refusal.status, { error: { code: "conflict", message: this.refusal.message } });
      const { words } = JSON.parse(text) as { words: string };
      this.answers.push({ question: answered, words });
      this.questions = this.questions.map((one) => (one.id === answered ? { ...one, answer_given: true } : one));
      return reply(200, { answer: { words } });
    }
    if (path === "/server") return reply(200, { ...page, version: "1", scope: "control", slots: 3, started_at: "" });
    if (path === "/sessions") return reply(200, { ...page, sessions: this.isForgotten ? [] : [this.session()] });
    if (path === "/questions") return reply(200, { questions: this.questions, problems: [] });
    if (path.endsWith("/questions")) return reply(200, { questions: this.questions, answered: [] });
    if (path.endsWith("/events")) {
      const names = searchParams.getAll("name");
      const events = this.events
        .filter((event) => event.seq > Number(searchParams.get("after") ?? 0) && (!names.length || names.includes(event.name)))
        .slice(-Number(searchParams.get("last") ?? Infinity));
      return reply(200, { events, next: events.at(-1)?.seq ?? 0, more: false });
    }
    return reply(404, { error: { code: "not_found", message: "nothing here" } });
  }

  private greet(peer: Peer): void {
    say(peer, { hello: { epoch: this.epoch, number: this.number, scope: "control", version: "1" } });
    peer.on("message", (data) => {
      const { subscribe } = JSON.parse(String(data)) as ClientMessage;
      if (!subscribe) return;
      this.subscriptions.push(subscribe);
      this.peers.add(peer);
      if (subscribe.epoch === this.epoch) this.send(peer, subscribe.after ?? this.number);
      else say(peer, { resync: true, number: this.number });
    });
  }

  private send(peer: Peer, after: number): void {
    const frame = this.changes.slice(after);
    if (frame.length) say(peer, { frame, number: this.number });
  }
}

function say(peer: Peer, message: ServerMessage): void {
  peer.send(JSON.stringify(message));
}

export function question(id: string, values: Partial<Question> = {}): Question {
  return {
    id, kind: "decision", step: "1/execute/01-01", header: "Ending", text: "How should it **end**? <img src=x onerror=alert(1)>",
    reason: "", multiple: false, free_text: true, human_only: false, inspection: false, asked_at: null, answer_given: false, answer: null,
    answer_with: `gsd answer ${id} CHOICE`, session: "s1", project: "/tmp/greeter",
    options: [
      { number: 1, label: "Mark (Recommended)", description: "Hello!", recommended: true },
      { number: 2, label: "Period", description: "Hello.", recommended: false },
      { number: 3, label: "Smile", description: "", recommended: false },
    ],
    ...values,
  };
}

/** A connection of Node; a browser closes one that is not yet open without an error, so this one does, too. */
export function openSocket(url: string, protocols: string[]): WebSocket {
  const socket = new NodeWebSocket(url, protocols);
  socket.on("error", () => undefined);
  return socket as unknown as WebSocket;
}
