/** What a new key is asked for. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Action } from '../admin/console/api.ts';
import type { AccountEntry } from '../admin/console/api-records.ts';
import { ActionButton } from './action.ts';

const DEFAULT_SCOPE = 'detections:read';

export function CreateKey({ account, scopes }: { account: AccountEntry; scopes: readonly string[] }): VNode {
  const { id, name, subscriptions } = account;
  const fields = html`<div class="fields">
    <label>Name<input name="name" required maxlength="200" autocomplete="off" placeholder="who uses it, and where" /></label>
    <fieldset><legend>Scopes</legend>${scopes.map((scope) => html`<label class="check"><input type="checkbox" name="scopes" value=${scope} checked=${scope === DEFAULT_SCOPE} />${scope}</label>`)}</fieldset>
    ${subscriptions.map(
      (
        one,
      ) => html`<label>Subscription ${one.id}${one.name !== null && `, ${one.name}`}<select name="subscriptions">
      <option value=${one.id}>every content type</option>
      ${one.content_types.length > 1 && one.content_types.map((type) => html`<option value=${`${one.id}:${type}`}>${type} only</option>`)}
      <option value="">not for this key</option></select></label>`,
    )}
    <label>Ends (UTC; empty: never)<input type="datetime-local" name="expires_at" /></label>
    <label>Only from these addresses<input name="allow_addresses" placeholder="any; or 192.0.2.1, 10.0.0.0/8" autocomplete="off" /></label>
    <label>Rows a day<input type="number" min="1" name="daily_rows" placeholder="only the account's allowance" /></label>
  </div>`;
  const action: Action = { kind: 'key-create', account: id, name: '', scopes: [], subscriptions: [] };
  return html`<${ActionButton} action=${action} name=${name} fields=${fields} complete=${(form: FormData) => keyOf(id, form)} />`;
}

/** What is left empty is left out. */
function keyOf(account: string, form: FormData): Action {
  const text = (name: string) => `${form.get(name) ?? ''}`.trim();
  const all = (name: string) =>
    form
      .getAll(name)
      .map(String)
      .filter((one) => one !== '');
  const addresses = text('allow_addresses')
    .split(/[\s,]+/)
    .filter((one) => one !== '');
  return {
    kind: 'key-create',
    account,
    name: text('name'),
    scopes: all('scopes'),
    subscriptions: all('subscriptions'),
    ...(text('expires_at') !== '' && { expires_at: `${text('expires_at')}:00Z` }),
    ...(addresses.length > 0 && { allow_addresses: addresses }),
    ...(text('daily_rows') !== '' && { daily_rows: Number(text('daily_rows')) }),
  };
}
