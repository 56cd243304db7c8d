/** Accounts with their subscriptions and keys: rows read, followers, refused requests. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Field } from '../admin/console/action-table.ts';
import type { AccountEntry, Customers as Answer, Follower, KeyEntry } from '../admin/console/api-records.ts';
import { actionButton, actions } from './action.ts';
import { count, span } from './format.ts';
import { age, bar, type Children, foreign, soft, state } from './inline.ts';
import { facts, panel, read, table } from './parts.ts';
import { useReading } from './server.ts';

export function Customers(): VNode {
  const reading = useReading<Answer>('/console/customers', ['customers']);
  const add = html`<code>wirewatch account add ID --name NAME</code>`;
  const none = html`<p class="empty">There is no account yet. Add one with ${add}, then a subscription and a key.</p>`;
  return read(reading, ({ accounts, scopes }) =>
    accounts.length === 0 ? panel('Accounts', none) : accounts.map((one) => account(one, scopes)),
  );
}

function account(of: AccountEntry, scopes: readonly string[]): VNode {
  const { id, name, suspended_at, rows_today, daily_rows, subscriptions, keys } = of;
  const live = keys.filter(({ status }) => status === 'active');
  const ended = keys.filter(({ status }) => status !== 'active');
  const make = { kind: 'key-create', account: id, name: '', scopes: [], subscriptions: [] } as const;
  const aside = [actionButton(make, { name, fields: keyFields(of, scopes) }), actions(of.actions, { name })];
  const isActive = suspended_at === null;
  const streams = subscriptions.map(({ id: number, name: own, content_types, time_zone }) => {
    const reads = `${content_types.join(' and ')}, ${time_zone}`;
    return [`Subscription ${number}`, own === null ? reads : [foreign(own), `, ${reads}`]] as const;
  });
  const parts = [
    facts([
      ['Account', foreign(id, 'mono')],
      ['State', isActive ? state('done', 'active') : state('held', ['suspended ', age(suspended_at)])],
      ['Rows today', allowance(rows_today, daily_rows)],
      ...(streams.length === 0 ? [['Subscriptions', 'none'] as const] : streams),
    ]),
    keyTable(live, 'Active keys', "No active key: nobody can read this account's detections."),
    ended.length > 0 &&
      html`<details><summary>${count(ended.length, 'key')} that ended</summary>${keyTable(ended, 'Keys that ended')}</details>`,
  ];
  return html`<div key=${id}>${panel(name, parts, { aside, help: 'security' })}</div>`;
}

/** Fields for the rights that this account can give to a key. */
function keyFields({ subscriptions }: AccountEntry, scopes: readonly string[]): readonly Field[] {
  const streams = subscriptions.map(({ id, name, content_types: types }): Field => {
    const one = types.length > 1 ? types.map((type) => [`${id}:${type}`, `${type} only`] as const) : [];
    const options = [[`${id}`, 'every content type'], ...one, ['', 'not for this key']] as const;
    const label = `Subscription ${id}${name === null ? '' : `, ${name}`}`;
    return { name: 'subscriptions', label, options, isList: true };
  });
  const all = scopes.map((one) => [one, one] as const);
  const addresses = { name: 'allow_addresses', hint: 'any; or 192.0.2.1, 10.0.0.0/8', isList: true };
  return [
    { name: 'name', label: 'Name', hint: 'who uses it, and where', required: true },
    { name: 'scopes', label: 'Scopes', type: 'checks', options: all, value: 'detections:read', isList: true },
    ...streams,
    { name: 'expires_at', label: 'Ends (UTC; empty: never)', type: 'datetime-local' },
    { ...addresses, label: 'Only from these addresses' },
    { name: 'daily_rows', label: 'Rows a day', type: 'number', hint: "only the account's allowance" },
  ];
}

function allowance(used: number, of: number | null): Children {
  return of === null ? count(used) : bar(used, of, `${count(used)} of ${count(of)}`);
}

function keyTable(keys: readonly KeyEntry[], label: string, empty?: string): VNode {
  return table(
    { label, rows: keys, key: ({ id }) => id, empty },
    ['Key', keyName],
    ['Reads', rights],
    ['Last used', ({ last_used_at }) => age(last_used_at)],
    ['Follows the stream', ({ follower }) => following(follower)],
    ['Rows today', ({ rows_today, daily_rows }) => allowance(rows_today, daily_rows), 'number'],
    ['Refused, 7 days', ({ refused }) => (refused.length === 0 ? soft('none') : refused.map(refusal))],
    ['Action', ({ actions: of, name }) => actions(of, { name })],
  );
}

function keyName({ id, name, status, expires_at, revoked_at }: KeyEntry): VNode {
  const isActive = status === 'active';
  const end = isActive ? expires_at : (revoked_at ?? expires_at);
  return html`${foreign(name)}<br />${foreign(id, 'mono')}
    ${end !== null && html`<br />${soft([isActive ? 'ends ' : `${status} `, age(end)])}`}`;
}

function rights({ subscriptions, scopes, allow_addresses: from }: KeyEntry): VNode {
  return html`${subscriptions.join(', ') || 'no subscription'}<br />${soft(scopes.join(', '))}
    ${from.length > 0 && html`<br />${soft(`only from ${from.join(', ')}`)}`}`;
}

/** How far it is behind, in rows and minutes, and when it was last used. */
export function following(of: Follower | null): VNode {
  if (of === null) return soft('never');
  const { rows_behind: rows, minutes_behind, silent_since, behind } = of;
  const late = minutes_behind === 0 ? '' : `, ${span(minutes_behind * 60_000)}`;
  const left = rows === 0 ? 'caught up' : `${count(rows, 'row')} to read`;
  const text = behind ? `${count(rows, 'row')} behind` : left;
  return html`${state(behind ? 'warning' : 'done', text + late)}<br />
    ${soft([behind ? 'silent since ' : 'last used ', age(silent_since)])}`;
}

function refusal({ code, count: times, last_at }: KeyEntry['refused'][number]): VNode {
  return html`<div>${count(times)} <code>${code}</code> ${soft(age(last_at))}</div>`;
}
