/** Small parts that every view is made of. What comes from an export is only ever text here. */
import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { instant, span } from './format.ts';
import { linkTo } from './route.ts';
import { type Reading, useNow } from './server.ts';

export type Children = ComponentChildren;

/** A shape for each state, so that none is told by its colour alone; drawn in a square of 12. */
const SHAPES = {
  done: 'M6 1.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6z',
  failed: 'M2.6 1.2 6 4.6l3.4-3.4 1.4 1.4L7.4 6l3.4 3.4-1.4 1.4L6 7.4l-3.4 3.4-1.4-1.4L4.6 6 1.2 2.6z',
  missing: 'M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm0 2a3 3 0 1 1 0 6 3 3 0 0 1 0-6z',
  abandoned: 'M1 5h10v2H1z',
  held: 'M2 1h3v10H2zM7 1h3v10H7z',
  warning: 'M6 .8 11.6 11H.4z',
} as const;

export type MarkName = keyof typeof SHAPES;

export function Mark({ name }: { name: MarkName }): VNode {
  return html`<svg class=${`mark ${name}`} viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d=${SHAPES[name]} /></svg>`;
}

/** A state in words behind its shape. */
export function State({ name, children }: { name: MarkName; children?: Children }): VNode {
  return html`<span class="state"><${Mark} name=${name} />${children}</span>`;
}

interface PanelProps {
  readonly title: string;
  /** On the right of its head. */
  readonly aside?: Children;
  /** A topic of the manual. */
  readonly help?: string;
  readonly class?: string;
  readonly children?: Children;
}

export function Panel({ title, aside, help, class: own = '', children }: PanelProps): VNode {
  return html`<section class=${`panel ${own}`} aria-label=${title}>
    <header><h2>${title}</h2>${help && html`<${Help} topic=${help} about=${title} />`}<div class="aside">${aside}</div></header>
    ${children}
  </section>`;
}

function Help({ topic, about }: { topic: string; about: string }): VNode {
  return html`<a class="help" href=${linkTo('manual', {}, topic)} aria-label=${`Manual: ${about}`} title="Manual">?</a>`;
}

export interface Column<Row> {
  readonly title: string;
  readonly of: (row: Row) => Children;
  /** Right-aligned. */
  readonly isNumber?: boolean;
  readonly class?: string;
}

interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  readonly empty?: Children;
}

/** On a narrow screen each row is a block, in which each value stands beside the title of its column. */
export function Table<Row>({ label, columns, rows, keyOf, empty = 'None.' }: TableProps<Row>): VNode {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const look = (column: Column<Row>) => `${column.isNumber ? 'number ' : ''}${column.class ?? ''}`;
  return html`<table aria-label=${label}>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${look(column)}>${column.title}</th>`)}</tr></thead>
    <tbody>${rows.map(
      (row) =>
        html`<tr key=${keyOf(row)}>${columns.map(
          (column) =>
            html`<td class=${look(column)} data-title=${column.title}><div>${column.of(row)}</div></td>`,
        )}</tr>`,
    )}</tbody>
  </table>`;
}

/** What is read, or that it is being read, or why it cannot be. */
export function Read<Answer>({
  of,
  children,
}: {
  of: Reading<Answer>;
  children: (data: Answer) => Children;
}): VNode {
  const { data, failure, readAgain } = of;
  return html`${
    failure &&
    html`<p class="failure" role="alert"><${Mark} name="failed" /> ${failure.message} <button type="button" onClick=${readAgain}>Try again</button></p>`
  }${data === undefined ? failure === undefined && html`<p class="reading">Reading …</p>` : children(data)}`;
}

/** A time by its age, with the time itself to hover over; null: `never`. */
export function Age({ at, never = 'never' }: { at: string | null; never?: string }): VNode {
  const now = useNow();
  if (at === null) return html`<span class="soft">${never}</span>`;
  const ms = Date.parse(at);
  const age = now - ms;
  return html`<time datetime=${at} title=${`${instant(ms)} UTC`}>${age < 0 ? `in ${span(-age)}` : `${span(age)} ago`}</time>`;
}

/** `2026-11-21 13:00:05` */
export function When({ at }: { at: string }): VNode {
  return html`<time class="when" datetime=${at}>${instant(Date.parse(at))}</time>`;
}

/** An address out of an export: a link where it is one of the web, else text. It tells the other side nothing of us. */
export function Outside({ href, children }: { href: unknown; children?: Children }): VNode {
  const text = typeof href === 'string' ? href : '';
  if (!/^https?:\/\//i.test(text)) return html`<span>${children ?? text}</span>`;
  return html`<a href=${text} target="_blank" rel="noreferrer noopener">${children ?? text}</a>`;
}

/** Embeddings, overrides and isolates (UAX #9): one that is never closed turns what stands behind it, too. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text that somebody else wrote: its direction stays its own. What could turn the text around it is shown as U+FFFD. */
export function Foreign({ text, class: own = '' }: { text: string; class?: string }): VNode {
  return html`<bdi class=${`foreign ${own}`}>${text.replace(TURNING, '\ufffd')}</bdi>`;
}

const COPIED_MS = 2000;

export function Copy({ text, label }: { text: string; label: string }): VNode {
  const [state, setState] = useState('Copy');
  useEffect(() => {
    const timer = setTimeout(() => setState('Copy'), COPIED_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setState('Copied'),
      () => setState('Select it and copy'),
    );
  return html`<button type="button" class="copy" aria-label=${`${state}: ${label}`} onClick=${copy}>${state}</button>`;
}

/** A command to paste. */
export function Code({ text, label }: { text: string; label: string }): VNode {
  return html`<div class="code"><pre tabindex="0" aria-label=${label}><code>${text}</code></pre><${Copy} text=${text} label=${label} /></div>`;
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly (readonly [Value, Children])[];
  readonly onChoose: (value: Value) => void;
}

/** One of a few, side by side. */
export function Choice<Value extends string>({ label, value, options, onChoose }: ChoiceProps<Value>): VNode {
  return html`<div class="choice" role="group" aria-label=${label}>${options.map(
    ([one, text]) =>
      html`<button type="button" aria-pressed=${one === value} onClick=${() => onChoose(one)}>${text}</button>`,
  )}</div>`;
}

/** Moves the focus to a heading when what it heads has changed, so that a screen reader says where one is. */
export function Heading({ children, about }: { children?: Children; about?: string }): VNode {
  const own = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (document.activeElement?.closest('[data-keeps-focus]') === null)
      own.current?.focus({ preventScroll: true });
  }, [about]);
  return html`<h1 tabindex="-1" ref=${own}>${children}</h1>`;
}
