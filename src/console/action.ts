/** Actions: button, form or confirmation, result. All of it is made from the table of operations (operations/table.ts). */
import { html } from 'htm/preact';
import { createContext, type TargetedEvent, type VNode } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { Action, Outcome } from '../admin/console/api.ts';
import { counted } from '../counted.ts';
import { isObject } from '../is-object.ts';
import type { OperationForm } from '../operations/table.ts';
import { commandWords } from './command-line.ts';
import { windowTime } from './format.ts';
import { type Choices, enteredIn, inputs, operationFields } from './forms.ts';
import { Code, Dialog, failed } from './parts.ts';
import { refusalOf, send } from './server.ts';

/** The operations that this session may run, by name; none in a read-only session. */
export const FormsContext = createContext<ReadonlyMap<string, OperationForm>>(new Map());

interface Subject {
  readonly name?: string | undefined;
  /** The button names it. */
  readonly isAlone?: boolean;
  /** The subject as it is: its members are the first values of a change. */
  readonly present?: object;
  /** Where the subject limits them. */
  readonly choices?: Choices;
}

type Asked = Subject & Readonly<{ action: Action; form: OperationForm }>;

/** First values of what is made, by member. */
const FIRST = { scopes: 'detections:read' };

/** Opens the dialog in the page's one {@link ActionHost}. */
let ask: (asked: Asked) => void = () => {};

function ActionButton({ action, subject }: { action: Action; subject: Subject }): VNode | null {
  const form = useContext(FormsContext).get(action.operation);
  if (form === undefined) return null;
  const onClick = () => ask({ ...subject, action, form });
  return html`<button type="button" class=${form.isGrave === true && 'grave'} onClick=${onClick}>
    ${form.label}${subject.isAlone === true && subjectOf(action)}
  </button>`;
}

/** A button for an action; nothing in a read-only session. */
export const actionButton = (action: Action, subject: Subject = {}): VNode =>
  html`<${ActionButton} action=${action} subject=${subject} />`;

export function actions(offered: readonly Action[], subject?: Subject): VNode | null {
  if (offered.length === 0) return null;
  return html`<div class="row">${offered.map((action) => actionButton(action, subject))}</div>`;
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
  const onDone = (text?: string) => {
    if (text !== undefined) setNotice(text);
    setAsked(null);
  };
  const dismiss = html`<button type="button" aria-label="Dismiss" onClick=${() => setNotice('')}>✕</button>`;
  return html`${asked !== null && html`<${ActionDialog} asked=${asked} onDone=${onDone} />`}
    <div class="said" role="status">${notice !== '' && html`<p>${notice}${dismiss}</p>`}</div>`;
}

/** @param onDone called with the result; without one, it was cancelled */
function ActionDialog({ asked, onDone }: { asked: Asked; onDone: (text?: string) => void }): VNode {
  const { action, form, name, present = {}, choices = {} } = asked;
  const onClose = () => onDone();
  const isChange = action.operation.endsWith(' set');
  const [entered, setEntered] = useState<Readonly<Record<string, unknown>>>(isChange ? {} : FIRST);
  const [word, setWord] = useState('');
  const [isSent, setIsSent] = useState(false);
  const [refusal, setRefusal] = useState('');
  const [made, setMade] = useState<Outcome | null>(null);
  // It belongs to its view; what was made, such as a key, stays.
  useEffect(() => {
    if (made !== null) return;
    addEventListener('hashchange', onClose);
    return () => removeEventListener('hashchange', onClose);
  }, [made]);
  const fields = operationFields(form, action.given, isChange ? { ...present } : FIRST, choices);
  const entries = (element: HTMLFormElement) => enteredIn(fields, new FormData(element), form, isChange);
  const onInput = ({ currentTarget }: TargetedEvent<HTMLFormElement>) => setEntered(entries(currentTarget));
  const submit = async (event: TargetedEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isSent) return;
    const given = { ...action.given, ...entries(event.currentTarget) };
    setIsSent(true);
    setRefusal('');
    const path = `/operations/${form.name.replaceAll(' ', '-')}`;
    const answer = await send<Outcome>(path, given, form.isJob).catch(refusalOf);
    if (typeof answer === 'string') {
      setRefusal(answer);
      return setIsSent(false);
    }
    if (form.isJob) return onDone(`${form.label}: it has started. The overview shows its progress.`);
    if (keyIn(answer) !== null || answer.warning !== null || answer.failed) return setMade(answer);
    onDone([answer.done ?? 'Done.', ...answer.next].join(' '));
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

const keyIn = ({ value }: Outcome): string | null =>
  isObject(value) && typeof value.key === 'string' ? value.key : null;

/** An option stays with its value when a long command is broken into lines. */
function command(form: OperationForm, given: Readonly<Record<string, unknown>>): VNode {
  const words = commandWords(form, given).map((text) => html`<span class="whole">${text}</span> `);
  return html`<code class="command">${words}</code>`;
}

function subjectOf({ given }: Action, name?: string): string {
  const starts = [given.start ?? []].flat();
  const [first] = starts;
  if (first !== undefined) {
    const time =
      starts.length > 1 ? counted(starts.length, 'window') : windowTime(Date.parse(`${first}`), ' UTC');
    return ` ${given.export}, ${time}`;
  }
  const id = given.id ?? given.account;
  if (id === undefined) return '';
  return name === undefined || name === '' || name === id ? ` ${id}` : ` ${name} (${id})`;
}
