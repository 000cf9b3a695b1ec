/**
 * Markdown as elements, never as HTML: what a model wrote is text. Tags are shown as they are, images as their
 * description, and only http and https links can be followed.
 */

import { marked, type Token, type Tokens } from "marked";
import { memo, type ReactElement, type ReactNode } from "react";

/** A line end in a question or a summary is meant as one. */
const OPTIONS = { breaks: true };

export const Markdown = memo(function Markdown({ text }: { text: string }): ReactElement {
  const { fields, body } = splitFrontMatter(text);
  return (
    <div className="markdown">
      {fields && <pre className="front-matter">{fields}</pre>}
      {blocks(marked.lexer(body, OPTIONS))}
    </div>
  );
});

/** Markdown within one line: code, emphasis, links. */
export const Inline = memo(function Inline({ text }: { text: string }): ReactElement {
  return <>{inline(marked.Lexer.lexInline(text))}</>;
});

function splitFrontMatter(text: string): { fields: string; body: string } {
  const match = /^---\n([\s\S]*?)\n---\n/.exec(text);
  return match ? { fields: match[1] ?? "", body: text.slice(match[0].length) } : { fields: "", body: text };
}

function blocks(tokens: Token[]): ReactNode[] {
  return tokens.map((token, key) => block(token, key));
}

function block(token: Token, key: number): ReactNode {
  switch (token.type) {
    case "heading": {
      const { depth, tokens } = token as Tokens.Heading;
      // The page has its own h1 and h2.
      const Tag = `h${Math.min(6, depth + 2)}` as "h3";
      return <Tag key={key}>{inline(tokens)}</Tag>;
    }
    case "paragraph":
      return <p key={key}>{inline((token as Tokens.Paragraph).tokens)}</p>;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return <span key={key}>{tokens ? inline(tokens) : text}</span>;
    }
    case "code":
      return (
        <pre key={key} tabIndex={0}>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote key={key}>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>;
    case "list":
      return list(token as Tokens.List, key);
    case "table":
      return table(token as Tokens.Table, key);
    case "hr":
      return <hr key={key} />;
    case "html":
      return (
        <pre key={key} className="literal" tabIndex={0}>
          {token.raw.trim()}
        </pre>
      );
    case "space":
    case "def":
      return null;
    default:
      return <p key={key}>{token.raw}</p>;
  }
}

function list(token: Tokens.List, key: number): ReactNode {
  const items = token.items.map((item, index) => (
    <li key={index} className={item.task ? "task" : undefined}>
      {item.task && <span aria-label={item.checked ? "done" : "open"}>{item.checked ? "☑ " : "☐ "}</span>}
      {blocks(item.tokens)}
    </li>
  ));
  return token.ordered ? (
    <ol key={key} start={Number(token.start) || 1}>
      {items}
    </ol>
  ) : (
    <ul key={key}>{items}</ul>
  );
}

function table(token: Tokens.Table, key: number): ReactNode {
  return (
    <div className="table-scroll" key={key} tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, index) => (
              <th key={index}>{inline(cell.tokens)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{inline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[]): ReactNode[] {
  return tokens.map((token, key) => {
    switch (token.type) {
      case "strong":
        return <strong key={key}>{inline((token as Tokens.Strong).tokens)}</strong>;
      case "em":
        return <em key={key}>{inline((token as Tokens.Em).tokens)}</em>;
      case "del":
        return <del key={key}>{inline((token as Tokens.Del).tokens)}</del>;
      case "codespan":
        return <code key={key}>{(token as Tokens.Codespan).text}</code>;
      case "br":
        return <br key={key} />;
      case "link":
        return link(token as Tokens.Link, key);
      case "image":
        return <span key={key}>[image: {(token as Tokens.Image).text || (token as Tokens.Image).href}]</span>;
      case "escape":
        return (token as Tokens.Escape).text;
      case "text": {
        const { tokens: inner, text } = token as Tokens.Text;
        return inner ? <span key={key}>{inline(inner)}</span> : text;
      }
      default:
        return token.raw;
    }
  });
}

function link(token: Tokens.Link, key: number): ReactNode {
  if (!/^https?:\/\//i.test(token.href)) return <span key={key}>{token.raw}</span>;
  const isPlain = token.text === token.href;
  return (
    <span key={key}>
      <a href={token.href} target="_blank" rel="noopener noreferrer">
        {isPlain ? token.href : inline(token.tokens)}
      </a>
      {!isPlain && <span className="muted"> ({token.href})</span>}
    </span>
  );
}
