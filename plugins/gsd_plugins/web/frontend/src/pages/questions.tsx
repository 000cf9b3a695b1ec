/** The inbox: the open questions of all runs, and one question by its address. */

import { useEffect, type ReactElement } from "react";

import { addressOf } from "../api/address";
import { dateAndTime, folderName, oneLine, stepWords } from "../lib/format";
import { questionPath, runPath } from "../lib/route";
import { useHub, useResource } from "../state/hooks";
import { Empty, Loaded } from "../ui/common";
import { QuestionCard, QuestionText } from "../ui/question";
import { Icon } from "../ui/status";

/** The open questions in front of everything else; nothing if there are none. */
export function OpenQuestions({ session, limit = 20 }: { session?: string; limit?: number }): ReactElement | null {
  const hub = useHub();
  const asked = useResource(addressOf("/questions"));
  const project = hub.sessions.find((one) => one.id === session)?.project;
  const questions = (asked.data?.questions ?? []).filter(
    (one) => !session || one.session === session || one.project === project,
  );
  if (!questions.length) return null;
  return (
    <section className="questions" aria-label="open questions">
      {questions.slice(0, limit).map((question, index) => (
        <QuestionCard
          key={question.id}
          question={question}
          session={question.session ?? session ?? ""}
          isFirst={index === 0}
          {...(session ? {} : { project: folderName(question.project ?? "") })}
        />
      ))}
      {questions.length > limit && <a href="#/q">All {questions.length} questions</a>}
    </section>
  );
}

/** The questions that wait for a person, one line each, for the page that is about runs. */
export function WaitingQuestions(): ReactElement | null {
  const asked = useResource(addressOf("/questions"));
  const open = (asked.data?.questions ?? []).filter((one) => !one.answer_given);
  if (!open.length) return null;
  return (
    <ul className="waiting" aria-label="open questions">
      {open.slice(0, 5).map((one) => (
        <li key={one.id}>
          <a href={questionPath(one.id)} data-item="">
            <Icon name="ask" className="tone-ask" />
            <strong>{folderName(one.project ?? "")}</strong>
            <span className="waiting-text">{oneLine(one.text, one.header)}</span>
            <span className="waiting-since muted">{one.asked_at && `since ${dateAndTime(one.asked_at)}`}</span>
            <span>Answer</span>
          </a>
        </li>
      ))}
      {open.length > 5 && (
        <li>
          <a href="#/q">All {open.length} questions</a>
        </li>
      )}
    </ul>
  );
}

export function QuestionsPage({ question }: { question: string }): ReactElement {
  const asked = useResource(addressOf("/questions"));
  const hub = useHub();
  const all = asked.data?.questions ?? [];
  const shown = question ? all.filter((one) => one.id === question) : all;
  // Not before it is known whether it can be answered: who sees the focus may press a key.
  const isReady = question !== "" && shown.length > 0 && hub.scope !== null;
  useEffect(() => {
    if (isReady) document.querySelector<HTMLElement>(".question")?.focus();
  }, [question, isReady]);
  return (
    <>
      <div className="page-head">
        <h1>{question ? "Question" : "Questions"}</h1>
        {question && (
          <a className="push" href="#/q">
            All questions
          </a>
        )}
      </div>
      {!question &&
        asked.data?.problems.map((one) => (
          <p key={one.project} className="tone-bad">
            Questions of <a href={runPath(one.session)}>{folderName(one.project)}</a> cannot be read: {one.problem}
          </p>
        ))}
      <Loaded from={asked} lines={2} shape="cards">
        {() =>
          shown.length ? (
            <section className="questions" aria-label="open questions">
              {shown.map((one, index) => (
                <QuestionCard
                  key={one.id}
                  question={one}
                  session={one.session ?? ""}
                  project={folderName(one.project ?? "")}
                  isFirst={index === 0}
                />
              ))}
            </section>
          ) : question ? null : (
            <Empty title="No open questions">When a run needs a decision, it appears here and on its page.</Empty>
          )
        }
      </Loaded>
      {asked.data && (!question || !shown.length) && (
        <Answered only={question} sessions={onePerProject(hub.sessions).map((session) => session.id)} />
      )}
    </>
  );
}

/** Sessions of one project share its questions; the last one stands for all. */
function onePerProject<T extends { project: string }>(sessions: readonly T[]): T[] {
  return [...new Map(sessions.map((session) => [session.project, session])).values()].reverse();
}

function Answered({ only, sessions }: { only: string; sessions: string[] }): ReactElement {
  return (
    <>
      {sessions.slice(0, 30).map((session) => (
        <AnsweredIn key={session} session={session} only={only} />
      ))}
    </>
  );
}

/** Who answered what, when, through which channel. */
export function AnsweredIn({ session, only = "" }: { session: string; only?: string }): ReactElement | null {
  const hub = useHub();
  const found = useResource(addressOf("/sessions/{session}/questions", { session }));
  const project = hub.sessions.find((one) => one.id === session)?.project ?? session;
  const answered = (found.data?.answered ?? []).filter((one) => !only || one.id === only);
  if (!answered.length) return null;
  return (
    <section>
      <h2>
        Answered in <a href={runPath(session)}>{folderName(project)}</a>
      </h2>
      <ul className="answered">
        {[...answered].reverse().map((one) => (
          <li key={one.id}>
            <QuestionText kind={one.kind} text={one.text} />
            <p>
              Answer: <strong>{one.words}</strong>
            </p>
            <p className="muted">
              {[one.by, one.how === "human" && one.via !== one.by && one.via !== "inbox" ? `through ${one.via}` : "", HOW[one.how] ?? one.how]
                .filter(Boolean)
                .join(", ")}
              {" · "}
              {stepWords(one.step)} · {dateAndTime(one.at)}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

const HOW: Record<string, string> = {
  human: "",
  file: "from an answer file",
  policy: "without a person",
  timeout: "because the time for an answer ran out",
};
