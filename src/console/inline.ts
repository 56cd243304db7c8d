/** What is shown within a line: states, times, and content of an export, which is always inserted as text. */
import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import { instant, shown, span } from './format.ts';
import { useNow } from './server.ts';

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

export const state = (name: MarkName, text: Children): VNode =>
  html`<span class="state">${mark(name)}${text}</span>`;

export const soft = (text: Children) => html`<span class="soft">${text}</span>`;

export const bar = (value: number, most: number, text: string): VNode => html`<span class="bar-text">
    <meter min="0" max=${Math.max(1, most)} value=${Math.min(value, most)} aria-hidden="true"></meter>${text}
  </span>`;

function Age({ at }: { at: string }): VNode {
  const ms = Date.parse(at);
  const age = useNow() - ms;
  const text = age < 0 ? `in ${span(-age)}` : `${span(age)} ago`;
  return html`<time datetime=${at} title=${`${instant(ms)} UTC`}>${text}</time>`;
}

/** A time by its age, with the time as its tooltip; null: `never`. */
export const age = (at: string | null, never = 'never'): VNode =>
  at === null ? soft(never) : html`<${Age} at=${at} />`;

/** `2026-11-21 13:00:05` */
export const when = (at: string) => html`<time datetime=${at}>${instant(Date.parse(at))}</time>`;

/** An address from an export: a link if it is http(s), else text. The link sends no referrer. */
export function outside(href: string | null, otherwise = ''): VNode {
  const text = foreign(href ?? otherwise);
  if (href === null || !/^https?:\/\//i.test(href)) return text;
  return html`<a href=${href} target="_blank" rel="noreferrer noopener">${text}</a>`;
}

/** Embeddings, overrides and isolates (UAX #9): one that is never closed also turns the text after it. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text from outside, with a direction of its own. Characters that could turn the text around it become U+FFFD. */
export function foreign(text: string | null | undefined, look?: 'mono' | 'soft' | 'reason' | 'title'): VNode {
  return html`<bdi class=${look}>${(text ?? '').replace(TURNING, '\ufffd')}</bdi>`;
}

/** Text with a command in it, whose words are not broken at their hyphens. */
export const withCommands = (text: string): VNode[] =>
  text
    .split(/(\S*-\S*)/)
    .map((part, at) => (at % 2 === 0 ? html`${part}` : html`<span class="whole">${part}</span>`));

export const value = (item: unknown) => foreign(shown(item), 'mono');
