/** Accounts with their subscriptions and keys: rows read, followers, refused requests. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { AccountEntry, Customers as Answer, KeyEntry } from '../admin/console/api.ts';
import { counted, grouped } from '../counted.ts';
import { actionButton, actions } from './action.ts';
import { span } from './format.ts';
import type { Choices, Option } from './forms.ts';
import { age, bar, type Children, foreign, soft, state } from './inline.ts';
import { facts, panel, read, table } from './parts.ts';
import { useReading } from './server.ts';

export function Customers(): VNode {
  const reading = useReading<Answer>('/console/customers', ['customers']);
  const add = actionButton({ operation: 'account add', given: {} });
  const none = html`<p class="empty">There is no account yet. Add one, then a subscription and a key.</p>`;
  return read(reading, ({ accounts }) => [
    html`<div class="row above">${add}</div>`,
    accounts.length === 0 ? panel('Accounts', none) : accounts.map(account),
  ]);
}

function account(entry: AccountEntry): VNode {
  const { id, name, suspended_at, rows_today, daily_rows, allowance: own, subscriptions, keys } = entry;
  const live = keys.filter(({ status }) => status === 'active');
  const ended = keys.filter(({ status }) => status !== 'active');
  const rights = { subscriptions: subscriptions.flatMap(rightOptions) };
  const isActive = suspended_at === null;
  const aside = [
    actionButton({ operation: 'subscription add', given: { account: id } }, { name }),
    actionButton({ operation: 'key create', given: { account: id } }, { name, choices: rights }),
    actions(entry.actions, { name, present: { ...entry, daily_rows: own } }),
  ];
  const parts = [
    facts([
      ['Account', foreign(id, 'mono')],
      ['State', isActive ? state('done', 'active') : state('held', ['suspended ', age(suspended_at)])],
      ['Rows today', allowance(rows_today, daily_rows)],
    ]),
    subscriptionTable(subscriptions),
    keyTable(live, 'Active keys', rights, "No active key: nobody can read this account's detections."),
    ended.length > 0 &&
      html`<details><summary>${counted(ended.length, 'key')} that ended</summary>${keyTable(ended, 'Keys that ended', rights)}</details>`,
  ];
  return html`<div key=${id}>${panel(name, parts, { aside, help: 'security' })}</div>`;
}

type Subscription = AccountEntry['subscriptions'][number];

const subscriptionTable = (subscriptions: readonly Subscription[]): VNode =>
  table(
    { label: 'Subscriptions', rows: subscriptions, key: ({ id }) => id, empty: 'No subscription yet.' },
    ['Subscription', ({ id, name }) => [foreign(`${id}`, 'mono'), name !== null && [' ', foreign(name)]]],
    ['Content types', ({ content_types }) => content_types.join(' and ')],
    ['Time zone', ({ time_zone }) => time_zone],
    ['Action', (own) => actions(own.actions, { name: own.name ?? '', present: own })],
  );

function rightOptions({ id, content_types: types }: Subscription): Option[] {
  const single = types.length > 1 ? types.map((one): Option => [`${id}:${one}`, `${id}, ${one} only`]) : [];
  return [[`${id}`, `${id}, every content type`], ...single];
}

const allowance = (used: number, most: number | null): Children =>
  most === null ? grouped(used) : bar(used, most, `${grouped(used)} of ${grouped(most)}`);

const keyTable = (keys: readonly KeyEntry[], label: string, choices: Choices, empty?: string): VNode =>
  table(
    { label, rows: keys, key: ({ id }) => id, empty },
    ['Key', keyName],
    ['Reads', rights],
    ['Last used', ({ last_used_at }) => age(last_used_at)],
    ['Follows the stream', following],
    ['Rows today', ({ rows_today, daily_rows }) => allowance(rows_today ?? 0, daily_rows), 'number'],
    ['Refused, 7 days', ({ refused }) => (refused.length === 0 ? soft('none') : refused.map(refusal))],
    ['Action', (key) => actions(key.actions, { name: key.name, present: keyMembers(key), choices })],
  );

/** A key, with its members as the operations name them. */
function keyMembers(key: KeyEntry): object {
  return { ...key, expires: key.expires_at, allow_address: key.allow_addresses };
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
function following({ follower, status, last_used_at }: KeyEntry): VNode {
  if (follower === null) return soft(status === 'active' ? 'never' : '–');
  const { rows_behind: rows, minutes_behind, behind } = follower;
  const late = minutes_behind === 0 ? '' : `, ${span(minutes_behind * 60_000)}`;
  const left = rows === 0 ? 'caught up' : `keeping up, ${counted(rows, 'row')} to read`;
  const text = behind ? `${counted(rows, 'row')} behind` : left;
  return html`${state(behind ? 'warning' : 'done', text + late)}<br />
    ${soft([behind ? 'silent since ' : 'last used ', age(last_used_at)])}`;
}

const refusal = ({ code, count: times, last_at }: KeyEntry['refused'][number]): VNode =>
  html`<div>${grouped(times)} <code>${code}</code> ${soft(age(last_at))}</div>`;
