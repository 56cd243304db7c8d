/** Actions: button, form or confirmation, result. All of it is made from the table of operations (operations/table.ts). */
import { html } from 'htm/preact';
import { createContext, type TargetedEvent, type VNode } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Action, Outcome } from '../admin/console/api.ts';
import type { OperationForm } from '../operations/table.ts';
import { commandWords } from './command-line.ts';
import { count, windowTime } from './format.ts';
import { enteredIn, inputs, type Option, operationFields, type Texts } from './forms.ts';
import { Code, Dialog, failed } from './parts.ts';
import { useRoute } from './route.ts';
import { Failure, send } from './server.ts';

/** The operations that this session may run, by name; none in a read-only session. */
export const FormsContext = createContext<ReadonlyMap<string, OperationForm>>(new Map());

interface Asked {
  readonly action: Action;
  readonly name?: string | undefined;
  readonly isAlone?: boolean;
  /** First values of what is made, by member. */
  readonly texts?: Texts;
  /** The subject as it is: its members are the first values of a change. */
  readonly present?: object;
  /** Values to choose from, by member, where the subject limits them. */
  readonly choices?: Readonly<Record<string, readonly Option[]>>;
}

/** Opens the dialog in the page's one {@link ActionHost}. */
let ask: (asked: Asked) => void = () => {};

function ActionButton(asked: Asked): VNode | null {
  const form = useContext(FormsContext).get(asked.action.operation);
  if (form === undefined) return null;
  return html`<button type="button" class=${form.isGrave === true && 'grave'} onClick=${() => ask(asked)}>
    ${form.label}${asked.isAlone === true && subjectOf(asked.action)}
  </button>`;
}

/** A button for an action; nothing in a read-only session. */
export function actionButton(action: Action, rest: Omit<Asked, 'action'> = {}): VNode {
  return html`<${ActionButton} ...${rest} action=${action} />`;
}

export function actions(offered: readonly Action[], rest: Omit<Asked, 'action'> = {}): VNode | null {
  if (offered.length === 0) return null;
  return html`<div class="row">${offered.map((action) => actionButton(action, rest))}</div>`;
}

const NOTICE_MS = 12_000;

/**
 * Dialogs and results, for all views: the view that started an action may be gone before it ends, and a new key must not
 * be lost with it.
 */
export function ActionHost(): VNode {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [notice, setNotice] = useState('');
  ask = setAsked;
  useEffect(() => {
    const timer = setTimeout(() => setNotice(''), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  const onDone = (text = notice) => {
    setNotice(text);
    setAsked(null);
  };
  const dismiss = html`<button type="button" aria-label="Dismiss" onClick=${() => setNotice('')}>✕</button>`;
  return html`${asked !== null && html`<${ActionDialog} asked=${asked} onDone=${onDone} />`}
    <div class="said" role="status">${notice !== '' && html`<p>${notice}${dismiss}</p>`}</div>`;
}

/** @param onDone called with the result; without one, it was cancelled */
function ActionDialog({ asked, onDone }: { asked: Asked; onDone: (text?: string) => void }): VNode | null {
  const { action, name, texts = {}, present, choices = {} } = asked;
  const form = useContext(FormsContext).get(action.operation);
  const onClose = () => onDone();
  const isChange = action.operation.endsWith(' set');
  const [entered, setEntered] = useState<Readonly<Record<string, unknown>>>(isChange ? {} : texts);
  const [word, setWord] = useState('');
  const [isSent, setIsSent] = useState(false);
  const [refusal, setRefusal] = useState('');
  const [made, setMade] = useState<Outcome | null>(null);
  const { view, name: place } = useRoute();
  const began = useRef(`${view}/${place}`);
  // It belongs to its view; what was made, such as a key, stays.
  useEffect(() => {
    if (made === null && began.current !== `${view}/${place}`) onClose();
  }, [view, place]);
  const first: Readonly<Record<string, unknown>> = isChange ? { ...present } : texts;
  const fields = useMemo(() => form && operationFields(form, action.given, first, choices), [form, asked]);
  if (form === undefined || fields === undefined) return null;
  const before = isChange ? Object.fromEntries(fields.map((field) => [field.name, field.value ?? ''])) : null;
  const entries = (element: HTMLFormElement) => enteredIn(fields, new FormData(element), form, before);
  const onInput = ({ currentTarget }: TargetedEvent<HTMLFormElement>) => setEntered(entries(currentTarget));
  const submit = async (event: TargetedEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isSent) return;
    const given = { ...action.given, ...entries(event.currentTarget) };
    setIsSent(true);
    setRefusal('');
    try {
      const answer = await send<Outcome>(pathOf(form), given, form.isJob);
      if (form.isJob) return onDone(`${form.label}: it has started. The overview shows its progress.`);
      if (keyIn(answer) !== null || answer.warning !== null || answer.failed) return setMade(answer);
      onDone([answer.done ?? 'Done.', ...answer.next].join(' '));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setRefusal(error.message);
      setIsSent(false);
    }
  };
  if (made !== null) return html`<${Made} outcome=${made} onClose=${onClose} />`;
  const subject = subjectOf(action, name);
  const onWord = ({ currentTarget }: TargetedEvent<HTMLInputElement>) => setWord(currentTarget.value);
  const expected = form.confirmedBy === null ? null : String(action.given[form.confirmedBy]);
  return html`<${Dialog} title=${`${form.title ?? form.label}${subject}?`} class="question" onClose=${onClose}>
    <form onSubmit=${submit} onInput=${onInput}>
      <p>${form.will}</p>
      ${fields.length > 0 && html`<div class="fields">${inputs(fields)}</div>`}
      ${
        expected !== null &&
        html`<label>Type ${expected} to confirm
          <input value=${word} onInput=${onWord} autocomplete="off" spellcheck=${false} required />
        </label>`
      }
      ${refusal !== '' && failed(refusal)}
      <p class="soft">The same in a terminal: ${command(form, { ...action.given, ...entered })}</p>
      <footer class="row">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button class=${form.isGrave === true ? 'main grave' : 'main'} disabled=${isSent || (expected ?? word) !== word}>${form.label}</button>
      </footer>
    </form>
  </${Dialog}>`;
}

/** What cannot be shown again, or must not be missed. */
function Made({ outcome, onClose }: { outcome: Outcome; onClose: () => void }): VNode {
  const key = keyIn(outcome);
  const [title, end] = key === null ? ['Look at this', 'Close'] : ['The new key', 'I have copied it'];
  return html`<${Dialog} key="made" title=${title} class="question" onClose=${onClose} isKept>
    <p>${outcome.done}</p>
    ${outcome.warning !== null && failed(outcome.warning)}
    ${
      key !== null &&
      html`<p>Copy it now: it is shown only once. Wirewatch keeps a hash of it, not the key.</p>
        <${Code} text=${key} label="the key" />`
    }
    <footer class="row"><button type="button" class="main" onClick=${onClose}>${end}</button></footer>
  </${Dialog}>`;
}

function keyIn({ value }: Outcome): string | null {
  const key = typeof value === 'object' && value !== null && 'key' in value ? value.key : null;
  return typeof key === 'string' ? key : null;
}

/** An option stays with its value when a long command is broken into lines. */
function command(form: OperationForm, given: Readonly<Record<string, unknown>>): VNode {
  const words = commandWords(form, given).map((text) => html`<span class="whole">${text}</span> `);
  return html`<code class="command">${words}</code>`;
}

function pathOf({ name }: OperationForm): string {
  return `/operations/${name.replaceAll(' ', '-')}`;
}

function subjectOf({ given }: Action, name?: string): string {
  const starts = [given.start ?? []].flat();
  const [first] = starts;
  if (first !== undefined) {
    const time =
      starts.length > 1 ? count(starts.length, 'window') : windowTime(Date.parse(`${first}`), ' UTC');
    return ` ${given.export}, ${time}`;
  }
  const id = given.id ?? given.account;
  if (id === undefined) return '';
  return name === undefined || name === '' || name === id ? ` ${id}` : ` ${name} (${id})`;
}
