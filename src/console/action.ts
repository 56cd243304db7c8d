/** Actions: button, confirmation dialog, result. */
import { html } from 'htm/preact';
import { createContext, type VNode } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { ACTIONS, type ActionDescription, type Field } from '../admin/console/action-table.ts';
import type { Action, ActionResult, Session } from '../admin/console/api.ts';
import { actionText, clock, dayName } from './format.ts';
import { inputs, valuesOfForm } from './forms.ts';
import { code, Dialog, failed } from './parts.ts';
import { Failure, send } from './server.ts';

export const SessionContext = createContext<Session | null>(null);

interface Asked {
  readonly action: Action;
  /** Name of its subject, where the id alone says little. */
  readonly name?: string | undefined;
  /** It is not shown beside its subject. */
  readonly isAlone?: boolean;
  /** Fields of its form that depend on the subject. */
  readonly fields?: readonly Field[];
}

/** Opens the dialog in the page's one {@link ActionHost}. */
let ask: (asked: Asked) => void = () => {};

function ActionButton(asked: Asked): VNode | null {
  const session = useContext(SessionContext);
  const { action, isAlone = false } = asked;
  const { label, isGrave }: ActionDescription = ACTIONS[action.kind];
  if (session === null || session.read_only) return null;
  const ms = 'window_start' in action ? Date.parse(action.window_start) : 0;
  const window = 'export' in action ? ` ${action.export}, ${dayName(ms)} ${clock(ms)}` : '';
  return html`<button type="button" class=${isGrave && 'grave'} onClick=${() => ask(asked)}>${isAlone ? label + window : label}</button>`;
}

/** A button for an action; nothing in a read-only session. */
export function actionButton(action: Action, rest: Omit<Asked, 'action'> = {}): VNode {
  return html`<${ActionButton} ...${rest} action=${action} />`;
}

export function actions(of: readonly Action[], rest: Omit<Asked, 'action'> = {}): VNode | null {
  if (of.length === 0) return null;
  return html`<div class="row">${of.map((action) => actionButton(action, rest))}</div>`;
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
function ActionDialog({ asked, onDone }: { asked: Asked; onDone: (text?: string) => void }): VNode {
  const onClose = () => onDone();
  const [isSent, setIsSent] = useState(false);
  const [refusal, setRefusal] = useState('');
  const [made, setMade] = useState<ActionResult | null>(null);
  const {
    title,
    will,
    isGrave,
    label,
    command,
    fields = asked.fields ?? [],
  } = actionText(asked.action, asked.name);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isSent || !(event.target instanceof HTMLFormElement)) return;
    const { kind, ...body } = asked.action;
    setIsSent(true);
    try {
      const entered = valuesOfForm(fields, new FormData(event.target));
      const result = await send<ActionResult>(`/console/actions/${kind}`, { ...body, ...entered });
      if (result.key !== undefined) return setMade(result);
      onDone(result.text);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setRefusal(error.message);
      setIsSent(false);
    }
  };
  // A new key cannot be shown again.
  if (made !== null)
    return html`<${Dialog} key="made" title="The new key" class="question" onClose=${onClose} isKept>
      <p>${made.text}</p>
      <p>Copy it now: it is shown only once. Wirewatch keeps a hash of it, not the key.</p>
      ${code(made.key?.key ?? '', 'the key')}
      <footer class="row"><button type="button" class="main" onClick=${onClose}>I have copied it</button></footer>
    </${Dialog}>`;
  return html`<${Dialog} title=${title} class="question" onClose=${onClose}>
    <form onSubmit=${submit}>
      <p>${will}</p>
      ${fields.length > 0 && html`<div class="fields">${inputs(fields)}</div>`}
      ${refusal !== '' && failed(refusal)}
      <p class="soft">The same in a terminal: <code>${command}</code></p>
      <footer class="row">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button class=${isGrave ? 'main grave' : 'main'} disabled=${isSent}>${label}</button>
      </footer>
    </form>
  </${Dialog}>`;
}
