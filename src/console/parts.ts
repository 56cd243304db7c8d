/** The parts of every view. Content of an export is always inserted as text. */
import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { instant, shown, span } from './format.ts';
import { linkTo } from './route.ts';
import { type Reading, useNow } from './server.ts';

export type Children = ComponentChildren;

/** A shape for each state, so that colour is not needed; drawn in a square of 12. */
const SHAPES = {
  done: 'M6 1.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6z',
  failed: 'M2.6 1.2 6 4.6l3.4-3.4 1.4 1.4L7.4 6l3.4 3.4-1.4 1.4L6 7.4l-3.4 3.4-1.4-1.4L4.6 6 1.2 2.6z',
  missing: 'M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm0 2a3 3 0 1 1 0 6 3 3 0 0 1 0-6z',
  abandoned: 'M1 5h10v2H1z',
  held: 'M2 1h3v10H2zM7 1h3v10H7z',
  warning: 'M6 .8 11.6 11H.4z',
} as const;

export type MarkName = keyof typeof SHAPES;

export function mark(name: MarkName): VNode {
  const fill = `var(--${name})`;
  return html`<svg class="mark" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path fill=${fill} d=${SHAPES[name]} /></svg>`;
}

/** The shape of a state, with its text. */
export function state(name: MarkName, text: Children): VNode {
  return html`<span class="state">${mark(name)}${text}</span>`;
}

/** An error; `more`: a button. */
export function failed(text: Children, more?: Children): VNode {
  return html`<p class="failure" role="alert">${mark('failed')} ${text} ${more}</p>`;
}

export function soft(text: Children): VNode {
  return html`<span class="soft">${text}</span>`;
}

interface PanelOptions {
  /** On the right of its heading. */
  readonly aside?: Children;
  /** A topic of the manual. */
  readonly help?: string;
  readonly look?: 'half' | 'across';
}

export function panel(title: string, children: Children, { aside, help, look }: PanelOptions = {}): VNode {
  const question =
    help &&
    html`<a class="help" href=${linkTo('manual', {}, help)} aria-label=${`Manual: ${title}`} title="Manual">?</a>`;
  return html`<section class=${`panel ${look ?? ''}`} aria-label=${title}>
    <header><h2>${title}</h2>${question}<div class="row aside">${aside}</div></header>
    ${children}
  </section>`;
}

/** Titles with values. */
export function facts(of: readonly (readonly [string, Children])[]): VNode {
  return html`<dl>${of.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export type Column<Row> = readonly [
  title: string,
  of: (row: Row) => Children,
  look?: 'number' | 'medium' | 'wide',
];

interface TableOptions<Row> {
  /** Identifies a row that moves; default: its index. */
  readonly key?: (row: Row) => string | number;
  /** Shown without rows. */
  readonly empty?: Children;
}

/** On a narrow screen each row is a block, with the title of the column beside each value. */
export function table<Row>(
  label: string,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { key, empty = 'None.' }: TableOptions<Row> = {},
): VNode {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const cell = (row: Row, [title, of, look]: Column<Row>) =>
    html`<td class=${look} data-title=${title}><div>${of(row)}</div></td>`;
  return html`<table class="stacks" aria-label=${label}>
    <thead><tr>${columns.map(([title, , look]) => html`<th scope="col" class=${look}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${key?.(row)}>${columns.map((column) => cell(row, column))}</tr>`)}</tbody>
  </table>`;
}

/** The content, or that it is being read, or the error. `more`: the label of the button for the next page. */
export function read<Answer>(
  { pages, failure, retry, older, isReading }: Reading<Answer>,
  children: (data: Answer, pages: readonly Answer[]) => Children,
  more = 'Show more',
): VNode {
  const [first] = pages;
  const again = html`<button type="button" onClick=${retry}>Try again</button>`;
  return html`${failure && failed(failure.message, again)}
    ${first !== undefined && children(first, pages)}
    ${first === undefined && failure === undefined && html`<p class="reading">Reading …</p>`}
    ${older && html`<button type="button" class="more" disabled=${isReading} onClick=${older}>${isReading ? 'Reading …' : more}</button>`}`;
}

function Age({ at }: { at: string }): VNode {
  const ms = Date.parse(at);
  const age = useNow() - ms;
  const text = age < 0 ? `in ${span(-age)}` : `${span(age)} ago`;
  return html`<time datetime=${at} title=${`${instant(ms)} UTC`}>${text}</time>`;
}

/** A time by its age, with the time as its tooltip; null: `never`. */
export function age(at: string | null, never = 'never'): VNode {
  return at === null ? soft(never) : html`<${Age} at=${at} />`;
}

/** `2026-11-21 13:00:05` */
export function when(at: string): VNode {
  return html`<time datetime=${at}>${instant(Date.parse(at))}</time>`;
}

/** An address from an export: a link if it is http(s), else text. The link sends no referrer. */
export function outside(href: unknown, otherwise = ''): VNode {
  const text = foreign(typeof href === 'string' ? href : otherwise);
  if (typeof href !== 'string' || !/^https?:\/\//i.test(href)) return text;
  return html`<a href=${href} target="_blank" rel="noreferrer noopener">${text}</a>`;
}

/** Embeddings, overrides and isolates (UAX #9): one that is never closed also turns the text after it. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text from outside, with a direction of its own. Characters that could turn the text around it become U+FFFD. */
export function foreign(text: string | null | undefined, look?: 'mono' | 'soft' | 'reason' | 'title'): VNode {
  return html`<bdi class=${look}>${(text ?? '').replace(TURNING, '\ufffd')}</bdi>`;
}

const COPIED_MS = 2000;

function Code({ text, label }: { text: string; label: string }): VNode {
  const [title, setTitle] = useState('Copy');
  useEffect(() => {
    const timer = setTimeout(() => setTitle('Copy'), COPIED_MS);
    return () => clearTimeout(timer);
  }, [title]);
  const copied = () => setTitle('Copied');
  const copy = () => navigator.clipboard.writeText(text).then(copied, () => setTitle('Select it and copy'));
  return html`<div class="code"><pre tabindex="0" aria-label=${label}><code>${text}</code></pre>
    <button type="button" class="copy" aria-label=${`${title}: ${label}`} onClick=${copy}>${title}</button></div>`;
}

/** Names with values from outside. */
export function members(of: Readonly<Record<string, unknown>>): VNode[] {
  return Object.entries(of).map(
    ([name, value]) => html`<span>${soft(name)} ${foreign(shown(value), 'mono')}</span> `,
  );
}

/** A command to paste. */
export function code(text: string, label: string): VNode {
  return html`<${Code} text=${text} label=${label} />`;
}

/** The same call of the API. */
export function call(curl: string): VNode {
  return html`<details class="call"><summary>The same by the API</summary>${code(curl, 'the call')}</details>`;
}

/** One of a few options, side by side. */
export function choice<Value extends string>(
  label: string,
  value: Value,
  options: readonly (readonly [Value, string])[],
  onChoose: (value: Value) => void,
): VNode {
  return html`<div class="choice" role="group" aria-label=${label}>${options.map(
    ([one, text]) =>
      html`<button type="button" aria-pressed=${one === value} onClick=${() => onChoose(one)}>${text}</button>`,
  )}</div>`;
}

/** Takes the focus when its subject has changed, so that a screen reader announces it. */
export function Heading({ children, about }: { children?: Children; about?: string }): VNode {
  const own = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (document.activeElement?.closest('[role=grid]') === null) own.current?.focus({ preventScroll: true });
  }, [about]);
  return html`<h1 tabindex="-1" ref=${own}>${children}</h1>`;
}

interface DialogProps {
  readonly title: Children;
  readonly class: 'question' | 'drawer';
  readonly onClose: () => void;
  /** Only its buttons close it: its content is not shown again. */
  readonly isKept?: boolean;
  readonly children?: Children;
}

/** A modal dialog or drawer. The browser keeps the focus inside. */
export function Dialog({ title, class: own, onClose, isKept = false, children }: DialogProps): VNode {
  const place = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    place.current?.showModal();
    return () => {
      if (before instanceof HTMLElement || before instanceof SVGElement) before.focus();
    };
  }, []);
  const onAway = (event: Event) => {
    if (event.type === 'cancel') event.preventDefault();
    if (!isKept && event.target === place.current) onClose();
  };
  return html`<dialog ref=${place} class=${own} aria-labelledby=${id} onCancel=${onAway} onClick=${onAway}>
    <div class="sheet">
      <header><h2 id=${id} tabindex="-1" autofocus>${title}</h2><button type="button" class="close" aria-label="Close" onClick=${onClose}>✕</button></header>
      ${children}
    </div>
  </dialog>`;
}
