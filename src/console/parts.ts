/** The parts of every view: panels, tables, what was read, dialogs. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { type Children, mark } from './inline.ts';
import { linkTo } from './route.ts';
import type { Reading } from './server.ts';

export const failed = (text: Children, more?: Children): VNode =>
  html`<p class="failure" role="alert">${mark('failed')} ${text} ${more}</p>`;

type PanelOptions = Readonly<{ aside?: Children; help?: string; look?: 'half' | 'across' }>;

export function panel(title: string, children: Children, { aside, help, look }: PanelOptions = {}): VNode {
  const question =
    help &&
    html`<a class="help" href=${linkTo('manual', {}, help)} aria-label=${`Manual: ${title}`} title="Manual">?</a>`;
  return html`<section class=${`panel ${look ?? ''}`} aria-label=${title}>
    <header><h2>${title}</h2>${question}<div class="row aside">${aside}</div></header>
    ${children}
  </section>`;
}

export type Facts = readonly (readonly [string, Children])[];

export const facts = (list: Facts): VNode =>
  html`<dl>${list.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`;

type Look = 'number' | 'medium' | 'wide';
export type Column<Row> = readonly [title: string, of: (row: Row) => Children, look?: Look];

export interface TableOptions<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  /** Identifies a row that moves; default: its index. */
  readonly key?: (row: Row) => string | number;
  readonly empty?: Children | undefined;
  /** What stands below a row, in full width; null: nothing. */
  readonly below?: (row: Row) => VNode | null;
}

/** On a narrow screen each row is a block, with the title of the column beside each value. */
export function table<Row>(options: TableOptions<Row>, ...columns: readonly Column<Row>[]): VNode {
  const { label, rows, key, empty = 'None.', below } = options;
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  const cell = (row: Row, [title, content, look]: Column<Row>) =>
    html`<td class=${look} data-title=${title}><div>${content(row)}</div></td>`;
  return html`<table class="stacks" aria-label=${label}>
    <thead><tr>${columns.map(([title, , look]) => html`<th scope="col" class=${look}>${title}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => [
      html`<tr key=${key?.(row)}>${columns.map((column) => cell(row, column))}</tr>`,
      below?.(row) && html`<tr class="below"><td colspan=${columns.length}>${below(row)}</td></tr>`,
    ])}</tbody>
  </table>`;
}

/** The content, or that it is being read, or the error. `more`: the label of the button for the next page. */
export function read<Answer extends object>(
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

export function Code({ text, label }: { text: string; label: string }): VNode {
  const [title, setTitle] = useState('Copy');
  const copied = () => setTitle('Copied');
  const copy = () => navigator.clipboard.writeText(text).then(copied, () => setTitle('Select it and copy'));
  return html`<div class="code"><pre tabindex="0" aria-label=${label}><code>${text}</code></pre>
    <button type="button" class="copy" aria-label=${`${title}: ${label}`} onClick=${copy}>${title}</button></div>`;
}

/** Buttons, one of which is pressed. @param texts of the values, in order */
export function choice<Value extends string>(
  label: string,
  value: Value,
  texts: Readonly<Record<Value, string>>,
  onChoose: (value: Value) => void,
): VNode {
  const button = (name: Value) =>
    html`<button type="button" aria-pressed=${name === value} onClick=${() => onChoose(name)}>${texts[name]}</button>`;
  const names = Object.keys(texts) as Value[];
  return html`<div class="choice" role="group" aria-label=${label}>${names.map(button)}</div>`;
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
  // Chromium closes it all the same when Escape is pressed again and again.
  const onClosed = () => isKept && place.current?.showModal();
  return html`<dialog ref=${place} class=${own} aria-labelledby=${id}
    onCancel=${onAway} onClick=${onAway} onClose=${onClosed}>
    <div class="sheet">
      <header>
        <h2 id=${id} tabindex="-1" autofocus>${title}</h2>
        <button type="button" class="close" aria-label="Close" onClick=${onClose}>✕</button>
      </header>
      ${children}
    </div>
  </dialog>`;
}
