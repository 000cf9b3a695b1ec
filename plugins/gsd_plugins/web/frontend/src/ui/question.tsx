/** A question as a card: options with number keys, own words, and changing the answer until a run has it. */

import { useCallback, useEffect, useRef, useState, type FormEvent, type ReactElement } from "react";

import type { Question } from "../api/types";
import { isTyping } from "../lib/keys";
import { dateAndTime, stepWords } from "../lib/format";
import { questionPath } from "../lib/route";
import { isEnded, useHub } from "../state/hooks";
import { useDraft } from "../state/drafts";
import { Ago, PlainText } from "./common";
import { Inline, Markdown } from "./markdown";
import { ResumeButton } from "./resume";
import { Icon } from "./status";

const KINDS: Record<string, string> = {
  decision: "Decision",
  checkpoint: "Checkpoint",
  permission: "Permission",
  escalation: "Problem",
};

interface Props {
  question: Question;
  session: string;
  /** Where it comes from, if the page shows several projects. */
  project?: string;
  /** Whether number keys work without focus in the card. */
  isFirst: boolean;
}

/** Only what an agent asks is Markdown: a problem quotes what programs printed, and a command is allowed as it is shown. */
export function QuestionText({ kind, text }: { kind: string; text: string }): ReactElement {
  if (kind === "permission") return <p className="literal">{text}</p>;
  return kind === "escalation" ? <PlainText text={text} /> : <Markdown text={text} />;
}

export function QuestionCard({ question, session, project, isFirst }: Props): ReactElement {
  const hub = useHub();
  const [isChanging, setChanging] = useState(false);
  const card = useRef<HTMLElement>(null);
  const isOpen = !question.answer_given || isChanging;
  const title = question.header || KINDS[question.kind] || "Question";

  const owner = hub.sessions.find((one) => one.id === session);
  const isContinued = hub.sessions.some((one) => one.project === owner?.project && (!isEnded(one) || one.summary?.status === "running"));
  const answer = async (words: string): Promise<boolean> => {
    const isAccepted = await hub.answer(session, question.id, words, title);
    if (isAccepted) setChanging(false);
    return isAccepted;
  };

  return (
    <article className="question" ref={card} aria-labelledby={`title-${question.id}`} data-item="" tabIndex={-1}>
      <header>
        <Icon name="ask" className="tone-ask" />
        <h3 id={`title-${question.id}`}>{title}</h3>
        <span className="muted">
          {project && <>{project} · </>}
          {stepWords(question.step)} · waiting since {dateAndTime(question.asked_at)}, <Ago at={question.asked_at} /> ·{" "}
          <a href={questionPath(question.id)} title={question.id}>
            link
          </a>
        </span>
      </header>
      <QuestionText kind={question.kind} text={question.text} />
      {question.reason && !/^the agent of \S+ asks$/.test(question.reason) && <p className="muted">{question.reason}</p>}
      {isOpen ? (
        <AnswerForm question={question} card={card} isFirst={isFirst} canAnswer={hub.scope === "control"} onAnswer={answer} />
      ) : (
        <div className="given">
          <p>
            <Icon name="check" className="tone-good" />
            <span>
              Your answer: <strong>{question.answer}</strong>.{" "}
              {isContinued
                ? "The run takes it when it looks next; until then it can be changed."
                : "No run is in progress: resume it to use the answer. Until then it can be changed."}
            </span>
          </p>
          <span className="actions">
            <button type="button" onClick={() => setChanging(true)} disabled={hub.scope !== "control"}>
              Change
            </button>
            {owner && !isContinued && <ResumeButton session={owner} />}
          </span>
        </div>
      )}
    </article>
  );
}

interface FormProps {
  question: Question;
  card: React.RefObject<HTMLElement | null>;
  isFirst: boolean;
  canAnswer: boolean;
  onAnswer: (words: string) => Promise<boolean>;
}

const NOTHING: { chosen: readonly number[]; words: string } = { chosen: [], words: "" };

function AnswerForm({ question, card, isFirst, canAnswer, onAnswer }: FormProps): ReactElement {
  const hub = useHub();
  const { options, multiple, free_text: hasFreeText } = question;
  const [draft, setDraft] = useDraft(question.id, NOTHING);
  const { chosen, words } = draft;
  const setWords = (text: string): void => setDraft(text ? { chosen: [], words: text } : NOTHING);
  const [isSending, setSending] = useState(false);
  const input = useRef<HTMLTextAreaElement>(null);
  const list = useRef<HTMLFieldSetElement>(null);

  const choose = useCallback(
    (number: number): void => {
      const others = chosen.filter((one) => one !== number);
      const more = others.length === chosen.length ? [...chosen, number].sort((a, b) => a - b) : others;
      setDraft({ chosen: multiple ? more : [number], words: "" });
      list.current?.querySelector<HTMLInputElement>(`input[value="${number}"]`)?.focus();
    },
    [chosen, multiple, setDraft],
  );

  const submit = async (event?: FormEvent): Promise<void> => {
    event?.preventDefault();
    const answer = words.trim() || chosen.join(",");
    if (!answer || isSending) return;
    setSending(true);
    const isAccepted = await onAnswer(answer);
    setSending(false);
    if (isAccepted) setDraft(undefined);
  };

  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const hasFocus = card.current?.contains(document.activeElement) ?? false;
      const isOurs = hasFocus || (isFirst && (document.activeElement === document.body || !document.activeElement));
      if (!canAnswer || !isOurs || isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const number = Number(event.key);
      if (number >= 1 && number <= options.length) choose(number);
      else if (event.key === "e" && hasFreeText) input.current?.focus();
      // The question itself has the focus when a link has opened it, also if that ends after an option was chosen.
      else if (event.key === "Enter" && (event.target instanceof HTMLInputElement || event.target === card.current)) void submit();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });

  return (
    <form onSubmit={(event) => void submit(event)}>
      {options.length > 0 && (
        <fieldset className="options" ref={list} disabled={!canAnswer}>
          <legend className="hidden">{multiple ? "choose one or more" : "choose one"}</legend>
          {options.map((option) => {
            const isChosen = chosen.includes(option.number);
            const isRecommendedInLabel = /\(recommended\)/i.test(option.label);
            return (
              <label key={option.number} className={isChosen ? "option chosen" : "option"}>
                <input
                  type={multiple ? "checkbox" : "radio"}
                  name={question.id}
                  value={option.number}
                  checked={isChosen}
                  onChange={() => choose(option.number)}
                />
                <kbd aria-hidden="true">{option.number}</kbd>
                <span>
                  <span className="option-label">
                    <Inline text={option.label.replace(/\s*\(recommended\)/i, "")} />
                    {(option.recommended || isRecommendedInLabel) && <span className="badge">recommended</span>}
                  </span>
                  {option.description && (
                    <span className="option-description">
                      <Inline text={option.description} />
                    </span>
                  )}
                </span>
              </label>
            );
          })}
        </fieldset>
      )}
      <div className="answer-row">
        {hasFreeText && (
          <textarea
            ref={input}
            rows={options.length ? 1 : 3}
            value={words}
            maxLength={20_000}
            disabled={!canAnswer}
            placeholder={options.length ? "or in your own words (e)" : "your answer"}
            aria-label="your own words"
            onChange={(event) => setWords(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape") event.currentTarget.blur();
              if (event.key === "Enter" && !event.shiftKey) void submit(event);
            }}
          />
        )}
        <button type="submit" className="primary" disabled={!canAnswer || isSending || !(words.trim() || chosen.length)}>
          {isSending ? "Sending …" : "Answer"}
        </button>
      </div>
      {hub.scope === "read" && <p className="muted">This token may only watch. Answer with: {question.answer_with}</p>}
      {question.human_only && <p className="muted">No policy may answer this: a person has to do it.</p>}
    </form>
  );
}
