/** A button that asks once, says what will happen, does it, and says what came of it. */
import { html } from 'htm/preact';
import { createContext, type VNode } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import type { Field } from '../admin/console/action-table.ts';
import type { Action, ActionResult, Session } from '../admin/console/api.ts';
import { actionText } from './action-texts.ts';
import { givenBy, inputs } from './list.ts';
import { code, Dialog, failed } from './parts.ts';
import { Failure, send } from './server.ts';

export const SessionContext = createContext<Session | null>(null);

interface Asked {
  readonly action: Action;
  /** Name of what it is done to. */
  readonly name?: string | undefined;
  readonly label?: string | undefined;
  /** What the person gives besides, where the texts of actions do not know it. */
  readonly fields?: readonly Field[];
}

/** Asks in the page's one {@link ActionHost}. */
let ask: (asked: Asked) => void = () => {};

function ActionButton(asked: Asked): VNode | null {
  const session = useContext(SessionContext);
  const { label, isGrave } = actionText(asked.action);
  if (session === null || session.read_only) return null;
  return html`<button type="button" class=${isGrave && 'grave'} onClick=${() => ask(asked)}>${asked.label ?? label}</button>`;
}

/** A button for an action; none in a session that may only read. */
export function actionButton(action: Action, rest: Omit<Asked, 'action'> = {}): VNode {
  return html`<${ActionButton} ...${rest} action=${action} />`;
}

/** @param labelOf where what they are for does not stand beside them */
export function actions(
  of: readonly Action[],
  name?: string,
  labelOf?: (action: Action) => string,
): VNode | null {
  if (of.length === 0) return null;
  return html`<div class="row">${of.map((action) => actionButton(action, { name, label: labelOf?.(action) }))}</div>`;
}

const SAID_MS = 12_000;

/**
 * Where questions are asked and results said, for all views: what an action was begun from may be gone before it is
 * done, and a new key must not go with it.
 */
export function ActionHost(): VNode {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [said, setSaid] = useState('');
  ask = setAsked;
  useEffect(() => {
    const timer = setTimeout(() => setSaid(''), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const dismiss = html`<button type="button" aria-label="Dismiss" onClick=${() => setSaid('')}>✕</button>`;
  return html`${asked !== null && html`<${ActionDialog} ...${asked} onDone=${setSaid} onClose=${() => setAsked(null)} />`}
    <div class="said" role="status">${said !== '' && html`<p>${said}${dismiss}</p>`}</div>`;
}

interface DialogProps extends Asked {
  readonly onDone: (text: string) => void;
  readonly onClose: () => void;
}

function ActionDialog({ action, name, fields: own, onDone, onClose }: DialogProps): VNode {
  const [isSent, setIsSent] = useState(false);
  const [refusal, setRefusal] = useState('');
  const [made, setMade] = useState<ActionResult | null>(null);
  const { title, will, isGrave, label, command, fields = own ?? [] } = actionText(action, name);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (isSent || !(event.target instanceof HTMLFormElement)) return;
    const { kind, ...body } = action;
    setIsSent(true);
    try {
      const given = givenBy(fields, new FormData(event.target));
      const result = await send<ActionResult>(`/console/actions/${kind}`, { ...body, ...given });
      if (result.key !== undefined) return setMade(result);
      onDone(result.text);
      onClose();
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setRefusal(error.message);
      setIsSent(false);
    }
  };
  if (made !== null) return html`<${NewKey} result=${made} onClose=${onClose} />`;
  return html`<${Dialog} title=${title} class="question" onClose=${onClose}>
    <form onSubmit=${submit}>
      <p>${will}</p>
      ${fields.length > 0 && html`<div class="fields">${inputs(fields)}</div>`}
      ${refusal !== '' && failed(refusal)}
      <p class="soft">The same in a terminal: <code>${command}</code></p>
      <footer class="row"><button type="button" onClick=${onClose}>Cancel</button><button class=${isGrave ? 'main grave' : 'main'} disabled=${isSent}>${label}</button></footer>
    </form>
  </${Dialog}>`;
}

/** A key that was not copied is lost. */
function NewKey({ result, onClose }: { result: ActionResult; onClose: () => void }): VNode {
  return html`<${Dialog} title="The new key" class="question" onClose=${onClose} isKept>
    <p>${result.text}</p>
    <p>Copy it now: it is shown only once. Wirewatch keeps a hash of it, not the key.</p>
    ${code(result.key?.key ?? '', 'the key')}
    <footer class="row"><button type="button" class="main" onClick=${onClose}>I have copied it</button></footer>
  </${Dialog}>`;
}
