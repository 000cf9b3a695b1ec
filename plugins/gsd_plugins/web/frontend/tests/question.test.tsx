import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { QuestionsPage } from "../src/pages/questions";
import { HubContext } from "../src/state/hooks";
import { Hub } from "../src/state/hub";
import { openSocket, question, TestServer, TOKEN } from "./server";

let server: TestServer;
let hub: Hub;

async function show(): Promise<void> {
  await hub.start();
  render(
    <HubContext value={hub}>
      <QuestionsPage question="" />
    </HubContext>,
  );
  await screen.findAllByRole("article");
}

const press = (key: string): boolean => fireEvent.keyDown(document.activeElement ?? document.body, { key });

beforeEach(async () => {
  server = await new TestServer().start();
  hub = new Hub(server.base, TOKEN, openSocket);
});

afterEach(async () => {
  cleanup();
  hub.close();
  await server.stop();
});

describe("a question", () => {
  it("is answered with two keys, and can be changed until a run has taken the answer", async () => {
    server.questions = [question("q-1")];
    await show();
    press("2");
    press("Enter");
    await waitFor(() => expect(server.answers).toEqual([{ question: "q-1", words: "2" }]));
    fireEvent.click(await screen.findByRole("button", { name: "Change" }));
    fireEvent.click(screen.getByRole("radio", { name: /Smile/ }));
    fireEvent.click(screen.getByRole("button", { name: "Answer" }));
    await waitFor(() => expect(server.answers.at(-1)).toEqual({ question: "q-1", words: "3" }));
  });

  it("shows a command that a person allows as it is, whole", async () => {
    const text = ["Allow Bash?", "ls **/*.py | grep '^(a|.*b )' && echo `id` <b> '.*'", ...Array(30).fill("echo `date` __x__")].join("\n");
    server.questions = [question("q-1", { kind: "permission", text })];
    await show();
    expect(screen.getByRole("article").querySelector(".literal")?.textContent).toBe(text);
  });

  it("takes several options where it allows them", async () => {
    server.questions = [question("q-1", { multiple: true })];
    await show();
    press("3");
    press("1");
    press("Enter");
    await waitFor(() => expect(server.answers).toEqual([{ question: "q-1", words: "1,3" }]));
  });

  it("takes own words instead of an option", async () => {
    server.questions = [question("q-1")];
    await show();
    press("1");
    press("e");
    const words = screen.getByRole("textbox");
    expect(document.activeElement).toBe(words);
    fireEvent.change(words, { target: { value: "with a wave" } });
    fireEvent.keyDown(words, { key: "Enter" });
    await waitFor(() => expect(server.answers).toEqual([{ question: "q-1", words: "with a wave" }]));
  });

  it("has no field for own words if it takes none", async () => {
    server.questions = [question("q-1", { free_text: false })];
    await show();
    expect(screen.queryByRole("textbox")).toBeNull();
  });

  it("shows what a model wrote as text", async () => {
    server.questions = [question("q-1")];
    await show();
    expect(document.querySelector("img")).toBeNull();
    expect(screen.getByText(/onerror/)).toBeTruthy();
    expect(screen.getByText("end").tagName).toBe("STRONG");
  });

  it("says who was faster", async () => {
    server.questions = [question("q-1")];
    server.refusal = { status: 409, message: "q-1 is already answered: Period (by Ada)" };
    await show();
    press("1");
    press("Enter");
    await waitFor(() => expect(hub.notices.map((notice) => notice.text)).toContain("q-1 is already answered: Period (by Ada)"));
  });

  it("appears without reloading", async () => {
    server.questions = [question("q-1")];
    await show();
    await waitFor(() => expect(hub.link).toBe("live"));
    server.questions.push(question("q-2", { header: "Second" }));
    act(() => server.publish("question.asked", "1/execute/01-01", {}));
    expect(await screen.findByRole("heading", { name: "Second" })).toBeTruthy();
  });
});
