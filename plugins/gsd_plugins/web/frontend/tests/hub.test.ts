import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import type { GsdEvent } from "../src/api/types";
import { Hub } from "../src/state/hub";
import { openSocket, TestServer, TOKEN } from "./server";

let server: TestServer;
let hub: Hub;

beforeEach(async () => {
  server = await new TestServer().start();
  hub = new Hub(server.base, TOKEN, openSocket);
});

afterEach(async () => {
  hub.close();
  await server.stop();
});

const seen = (): number[] => hub.log("s1").events.map((event) => event.seq);
const live = (): Promise<void> => vi.waitFor(() => expect(hub.link).toBe("live"));

describe("the connection", () => {
  it("continues after the last change that was seen, and misses nothing that happened meanwhile", async () => {
    await hub.start();
    await live();
    server.publish("step.started", "init", { kind: "init" });
    hub.log("s1");
    await vi.waitFor(() => expect(seen()).toEqual([1]));
    server.drop();
    await vi.waitFor(() => expect(hub.lostAt).toBeGreaterThan(0));
    server.publish("step.completed", "init");
    server.publish("step.started", "1/plan", { kind: "plan" });
    await vi.waitFor(() => expect(seen()).toEqual([1, 2, 3]), 5000);
    expect(server.subscriptions.at(-1)).toMatchObject({ session: "*", after: 1, epoch: "e1" });
    expect(hub.lostAt).toBe(0);
  });

  it("reads everything again when the server is another one", async () => {
    await hub.start();
    await live();
    hub.log("s1");
    server.publish("step.started", "init", { kind: "init" });
    await vi.waitFor(() => expect(seen()).toEqual([1]));
    server.epoch = "e2";
    server.publish("step.completed", "init");
    server.drop();
    server.changes = [];
    server.number = 0;
    await vi.waitFor(() => expect(seen()).toEqual([1, 2]), 5000);
  });

  it("shows each event once, although it may arrive by both ways", async () => {
    for (let number = 0; number < 300; number += 1) server.publish("agent.activity", "init", { text: String(number) });
    await hub.start();
    await live();
    hub.log("s1");
    for (let number = 300; number < 600; number += 1) server.publish("agent.activity", "init", { text: String(number) });
    await vi.waitFor(() => expect(seen().at(-1)).toBe(600));
    // The oldest events are read for those only who look at them.
    await hub.log("s1").loadPast(() => true);
    expect(seen()).toHaveLength(600);
    expect(new Set(seen()).size).toBe(600);
    expect(seen()).toEqual([...seen()].sort((a, b) => a - b));
  });

  it("reads again what a missing number may have changed", async () => {
    await hub.start();
    await live();
    hub.log("s1");
    await vi.waitFor(() => expect(hub.log("s1").isComplete).toBe(true));
    const lost: GsdEvent = { seq: 1, name: "step.started", at: "", run: "r-1", step: "init", data: { kind: "init" } };
    server.events.push(lost);
    server.number += 1;
    server.changes.push({ number: 99, session: "s9", state: { ...server.session(), id: "s9" } });
    server.publish("step.completed", "init");
    await vi.waitFor(() => expect(seen()).toEqual([1, 2]));
  });

  it("removes a session that was forgotten elsewhere", async () => {
    await hub.start();
    await live();
    expect(hub.sessions.map((session) => session.id)).toEqual(["s1"]);
    await vi.waitFor(() => expect(server.subscriptions).toHaveLength(1));
    server.forget();
    await vi.waitFor(() => expect(hub.sessions).toEqual([]));
  });

  it("asks for a token if the server refuses it", async () => {
    const other = new Hub(server.base, "wrong", openSocket);
    await other.start();
    expect(other.link).toBe("refused");
    other.close();
  });

  it("says why an action failed", async () => {
    await hub.start();
    await hub.act(() => hub.client.post("/sessions/{session}/stop", { session: "s1" }, {}));
    expect(hub.notices.map((notice) => notice.text)).toEqual(["nothing here"]);
  });
});

describe("two answers to one question", () => {
  const texts = (): [string, string][] => hub.notices.map((notice) => [notice.kind, notice.text]);
  const answered = (words: string): void =>
    server.publish("question.answered", "init", { question: "q-1", words, by: "slack" });

  it("are told apart when the run takes the other one after this page's was accepted", async () => {
    await hub.start();
    await live();
    expect(await hub.answer("s1", "q-1", "Smile", "Ending")).toBe(true);
    expect(texts()).toEqual([["info", "Answered: Ending"]]);
    answered("Period");
    // In the place of the first notice, which is not true any more.
    await vi.waitFor(() => expect(texts()).toEqual([["error", "Ending is already answered: Period (by slack)"]]));
    hub.notify("error", "the server cannot be reached");
    hub.notify("error", "the server cannot be reached");
    expect(texts()).toHaveLength(2);
  });

  it("are told apart when the other one is known before this page's was accepted", async () => {
    await hub.start();
    await live();
    hub.log("s1");
    answered("Period");
    await vi.waitFor(() => expect(seen()).toEqual([1]));
    expect(await hub.answer("s1", "q-1", "Smile", "Ending")).toBe(true);
    expect(texts()).toEqual([["error", "Ending is already answered: Period (by slack)"]]);
  });

  it("are one answer if their words are the same, and it is said once", async () => {
    await hub.start();
    await live();
    await hub.answer("s1", "q-1", "Smile", "Ending");
    answered("Smile");
    hub.log("s1");
    await vi.waitFor(() => expect(seen()).toEqual([1]));
    answered("Period");
    await vi.waitFor(() => expect(seen()).toEqual([1, 2]));
    expect(texts()).toEqual([["info", "Answered: Ending"]]);
  });

  it("are nothing to this page if it gave none of them", async () => {
    await hub.start();
    await live();
    hub.log("s1");
    answered("Smile");
    answered("Period");
    await vi.waitFor(() => expect(seen()).toEqual([1, 2]));
    expect(texts()).toEqual([]);
  });
});

describe("the timeline", () => {
  it("knows several steps in progress, their cost and how they ended", async () => {
    server.publish("step.started", "1/execute/01-01", { kind: "execute", phase: "1", plan: "01-01", attempt: 1 });
    server.publish("step.started", "1/execute/01-02", { kind: "execute", phase: "1", plan: "01-02", attempt: 1 });
    server.publish("cost.changed", "1/execute/01-02", { dollars: "0.25" });
    server.publish("step.completed", "1/execute/01-02", { subject: "done" });
    await hub.start();
    hub.log("s1");
    await vi.waitFor(() => expect(seen()).toHaveLength(4));
    const { steps, dollars } = hub.log("s1").timeline;
    expect([...steps.values()].map((step) => [step.plan, step.status, step.dollars])).toEqual([
      ["01-01", "running", 0],
      ["01-02", "completed", 0.25],
    ]);
    expect(dollars).toBe(0.25);
    // Without a process, as after a kill, nothing of it is in progress, and its time stands still.
    const [killed] = hub.log("s1").timeline.stepsOf(false);
    expect([killed?.status, killed?.endedAt]).toEqual(["interrupted", hub.log("s1").events.at(-1)?.at]);
    expect(hub.log("s1").timeline.stepsOf(true)[0]?.status).toBe("running");
    server.publish("run.closed", "", { exit: 3 });
    await live();
    await vi.waitFor(() => expect(steps.get("1/execute/01-01")?.status).toBe("interrupted"));
  });
});
