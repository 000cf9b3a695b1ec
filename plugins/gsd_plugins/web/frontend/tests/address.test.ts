import { expect, it } from "vitest";

import { addressOf, type Address } from "../src/api/address";
import type { Client } from "../src/api/client";
import type { CostReport } from "../src/api/types";

it("puts values into the path, and the others into the query", () => {
  expect(addressOf("/questions")).toBe("/questions");
  expect(addressOf("/sessions/{session}/phases/{phase}", { session: "a/b", phase: "2.1" })).toBe("/sessions/a%2Fb/phases/2.1");
  expect(addressOf("/sessions/{session}/files", { session: "s1", path: "a b.py", first: 3 })).toBe(
    "/sessions/s1/files?path=a+b.py&first=3",
  );
  expect(addressOf("/sessions/{session}/events", { session: "s1", last: 5, name: ["a", "b"] })).toBe(
    "/sessions/s1/events?last=5&name=a&name=b",
  );
  // A value that looks like a place is not one.
  expect(addressOf("/sessions/{session}/commits/{sha}", { session: "$&", sha: "{session}" })).toBe(
    "/sessions/%24%26/commits/%7Bsession%7D",
  );
});

/** Never called: that each line below "expect-error" does not compile is what `npm run build` checks. */
export function mistakes(client: Client): void {
  const cost: Address<CostReport> = addressOf("/sessions/{session}/cost", { session: "s1", by: "day" });
  void client.get(cost).then((report: CostReport) => report.total);
  void client.put("/sessions/{session}/questions/{question}/answer", { session: "s1", question: "q1" }, { words: "1" });
  // @ts-expect-error there is no such path
  addressOf("/sessions/{session}/costs", { session: "s1" });
  // @ts-expect-error a value is missing
  addressOf("/sessions/{session}/cost");
  // @ts-expect-error there is no such value
  addressOf("/sessions/{session}/cost", { session: "s1", per: "day" });
  // @ts-expect-error not one of the values of this query
  addressOf("/sessions/{session}/cost", { session: "s1", by: "week" });
  // @ts-expect-error another answer
  const phases: Address<CostReport> = addressOf("/sessions/{session}/phases", { session: "s1" });
  // @ts-expect-error a string is not an address
  void client.get("/sessions");
  // @ts-expect-error nothing is put there
  void client.put("/sessions", {}, {});
  // @ts-expect-error the body has no such key
  void client.post("/sessions", {}, { project: "/p", ideas: "" });
  // @ts-expect-error the body lacks its key
  void client.put("/sessions/{session}/questions/{question}/answer", { session: "s1", question: "q1" }, {});
  // @ts-expect-error a value of the path is missing
  void client.remove("/sessions/{session}", {});
  void phases;
}
