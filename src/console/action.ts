/** A button that asks once, says what will happen, does it, and says what came of it. */
import { html } from 'htm/preact';
import { createContext, type VNode } from 'preact';
import { useContext, useEffect, useMemo, useState } from 'preact/hooks';
import type { Action, ActionResult } from '../admin/console/api.ts';
import { actionText } from './action-texts.ts';
import { Dialog } from './dialog.ts';
import { clock, dayName } from './format.ts';
import { type Children, Copy, Mark } from './parts.ts';
import { Failure, send } from './server.ts';

interface ActionProps {
  readonly action: Action;
  /** Name of what it is done to. */
  readonly name?: string;
  readonly label?: string;
  /** What the person gives besides: fields of a form, and how they complete the action. */
  readonly fields?: Children;
  readonly complete?: (form: FormData) => Action;
}

interface Host {
  ask(action: ActionProps): void;
  say(text: string): void;
}

const HostContext = createContext<Host>({ ask() {}, say() {} });

const SAID_MS = 12_000;

/**
 * Where questions are asked and results said, for all views: what an action was begun from may be gone before it is
 * done, and a new key must not go with it.
 */
export function ActionHost({ children }: { children?: Children }): VNode {
  const [asked, setAsked] = useState<ActionProps | null>(null);
  const [said, setSaid] = useState('');
  const host = useMemo(() => ({ ask: setAsked, say: setSaid }), []);
  useEffect(() => {
    const timer = setTimeout(() => setSaid(''), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  return html`<${HostContext.Provider} value=${host}>
    ${children}
    ${asked !== null && html`<${ActionDialog} ...${asked} onClose=${() => setAsked(null)} />`}
    <div class="said" role="status">${said !== '' && html`<p>${said}<button type="button" aria-label="Dismiss" onClick=${() => setSaid('')}>✕</button></p>`}</div>
  </${HostContext.Provider}>`;
}

export function ActionButton(props: ActionProps): VNode {
  const { ask } = useContext(HostContext);
  const { label, isGrave } = actionText(props.action, props.name);
  return html`<button type="button" class=${isGrave ? 'grave' : ''} onClick=${() => ask(props)}>${props.label ?? label}</button>`;
}

interface ActionsProps {
  readonly of: readonly Action[];
  readonly name?: string;
  /** Whether the buttons say what they are for: where it does not stand beside them. */
  readonly hasSubject?: boolean;
}

export function Actions({ of, name, hasSubject = false }: ActionsProps): VNode | null {
  if (of.length === 0) return null;
  return html`<div class="actions">${of.map((action) =>
    action.kind === 'key-rotate'
      ? html`<${RotateButton} action=${action} name=${name} />`
      : html`<${ActionButton} action=${action} name=${name} label=${hasSubject ? labelOf(action) : undefined} />`,
  )}</div>`;
}

function labelOf(action: Action): string {
  const { label } = actionText(action);
  if (!('window_start' in action)) return label;
  const ms = Date.parse(action.window_start);
  return `${label} ${action.export}, ${dayName(ms)} ${clock(ms)}`;
}

const OVERLAPS = [
  ['7d', 'for 7 more days'],
  ['1d', 'for 1 more day'],
  ['1h', 'for 1 more hour'],
  ['0', 'not at all: it ends now'],
] as const;

function RotateButton({
  action,
  name,
}: {
  action: Extract<Action, { kind: 'key-rotate' }>;
  name?: string;
}): VNode {
  const fields = html`<label>The old key goes on working<select name="overlap">${OVERLAPS.map(
    ([value, text]) => html`<option value=${value}>${text}</option>`,
  )}</select></label>`;
  const complete = (form: FormData): Action => ({ ...action, overlap: `${form.get('overlap')}` });
  return html`<${ActionButton} action=${action} name=${name} fields=${fields} complete=${complete} />`;
}

type Step =
  | { readonly kind: 'asked' | 'sent' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'done'; readonly result: ActionResult };

function ActionDialog({
  action,
  name,
  fields,
  complete,
  onClose,
}: ActionProps & { onClose: () => void }): VNode {
  const { say } = useContext(HostContext);
  const [step, setStep] = useState<Step>({ kind: 'asked' });
  const { title, will, isGrave = false, label, command } = actionText(action, name);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (step.kind === 'sent' || !(event.target instanceof HTMLFormElement)) return;
    const { kind, ...body } = complete?.(new FormData(event.target)) ?? action;
    setStep({ kind: 'sent' });
    try {
      const result = await send<ActionResult>(`/console/actions/${kind}`, body);
      if (result.key !== undefined) {
        setStep({ kind: 'done', result });
        return;
      }
      say(result.text);
      onClose();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setStep({ kind: 'refused', reason: error.message });
    }
  };
  if (step.kind === 'done') return html`<${NewKey} result=${step.result} onClose=${onClose} />`;
  return html`<${Dialog} title=${title} class="question" onClose=${onClose}>
    <form onSubmit=${submit}>
      <p>${will}</p>
      ${fields}
      ${step.kind === 'refused' && html`<p class="failure" role="alert"><${Mark} name="failed" /> ${step.reason}</p>`}
      <p class="soft">The same in a terminal: <code>${command}</code></p>
      <footer><button type="button" onClick=${onClose}>Cancel</button><button class=${isGrave ? 'main grave' : 'main'} disabled=${step.kind === 'sent'}>${label}</button></footer>
    </form>
  </${Dialog}>`;
}

/** Only a click on its button closes it: a key that was not copied is lost. */
function NewKey({ result, onClose }: { result: ActionResult; onClose: () => void }): VNode {
  const key = result.key?.key ?? '';
  return html`<${Dialog} title="The new key" class="question" onClose=${onClose} isKept>
    <p>${result.text}</p>
    <p>Copy it now: it is shown only once. Wirewatch keeps a hash of it, not the key.</p>
    <div class="code"><pre tabindex="0" aria-label="The key"><code>${key}</code></pre><${Copy} text=${key} label="the key" /></div>
    <footer><button type="button" class="main" onClick=${onClose}>I have copied it</button></footer>
  </${Dialog}>`;
}
