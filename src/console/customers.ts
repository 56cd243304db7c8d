/** Accounts with their subscriptions and keys: what they read, how far their followers are, what was refused. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { AccountEntry, Customers as Answer, Follower, KeyEntry } from '../admin/console/api-records.ts';
import { Actions } from './action.ts';
import { count, span } from './format.ts';
import { CreateKey } from './key-form.ts';
import { Age, Foreign, Heading, type MarkName, Panel, Read, State, Table } from './parts.ts';
import { useReading } from './server.ts';
import { useIsReadOnly } from './session.ts';

export function Customers(): VNode {
  const reading = useReading<Answer>('/console/customers', ['customers']);
  return html`<${Heading}>Customers</${Heading}>
    <${Read} of=${reading}>${(answer: Answer) =>
      answer.accounts.length === 0
        ? html`<${Panel} title="Accounts"><p class="empty">There is no account yet. Add one with <code>wirewatch account add ID --name NAME</code>, then a subscription and a key.</p></${Panel}>`
        : answer.accounts.map(
            (account) => html`<${Account} key=${account.id} account=${account} scopes=${answer.scopes} />`,
          )}</${Read}>`;
}

function Account({ account, scopes }: { account: AccountEntry; scopes: readonly string[] }): VNode {
  const { id, name, suspended_at, rows_today, daily_rows, subscriptions, keys, actions } = account;
  const isReadOnly = useIsReadOnly();
  const aside = html`${!isReadOnly && html`<${CreateKey} account=${account} scopes=${scopes} />`}<${Actions} of=${actions.filter(({ kind }) => kind !== 'key-create')} name=${name} />`;
  return html`<${Panel} title=${name} aside=${aside} help="security">
    <dl class="fact-grid">
      <div><dt>Account</dt><dd class="mono">${id}</dd></div>
      <div><dt>State</dt><dd>${suspended_at === null ? html`<${State} name="done">active</${State}>` : html`<${State} name="held">suspended <${Age} at=${suspended_at} /></${State}>`}</dd></div>
      <div><dt>Rows today</dt><dd><${Allowance} used=${rows_today} of=${daily_rows} /></dd></div>
      ${subscriptions.map((one) => html`<div key=${one.id}><dt>Subscription ${one.id}</dt><dd>${one.name !== null && html`<${Foreign} text=${one.name} />, `}${one.content_types.join(' and ')}, ${one.time_zone}</dd></div>`)}
      ${subscriptions.length === 0 && html`<div><dt>Subscriptions</dt><dd class="soft">none</dd></div>`}
    </dl>
    <${Keys} keys=${keys} />
  </${Panel}>`;
}

function Allowance({ used, of }: { used: number; of: number }): VNode {
  return html`<span class="strength"><meter min="0" max=${Math.max(1, of)} value=${Math.min(used, of)} aria-hidden="true"></meter>${count(used)} of ${count(of)}</span>`;
}

function Keys({ keys }: { keys: readonly KeyEntry[] }): VNode {
  const live = keys.filter(({ status }) => status === 'active');
  const ended = keys.filter(({ status }) => status !== 'active');
  return html`<${KeyTable} keys=${live} label="Active keys" empty="No active key: nobody can read this account's detections." />
    ${ended.length > 0 && html`<details><summary>${count(ended.length, 'key')} that ended</summary><${KeyTable} keys=${ended} label="Keys that ended" /></details>`}`;
}

function KeyTable({
  keys,
  label,
  empty,
}: {
  keys: readonly KeyEntry[];
  label: string;
  empty?: string;
}): VNode {
  const columns = [
    { title: 'Key', of: (one: KeyEntry) => html`<${Name} of=${one} />` },
    { title: 'Reads', of: (one: KeyEntry) => html`<${Rights} of=${one} />` },
    { title: 'Last used', of: (one: KeyEntry) => html`<${Age} at=${one.last_used_at} />` },
    { title: 'Follows the stream', of: ({ follower }: KeyEntry) => html`<${Following} of=${follower} />` },
    {
      title: 'Rows today',
      isNumber: true,
      of: (one: KeyEntry) =>
        one.daily_rows === null
          ? count(one.rows_today)
          : html`<${Allowance} used=${one.rows_today} of=${one.daily_rows} />`,
    },
    { title: 'Refused, 7 days', of: ({ refused }: KeyEntry) => html`<${Refused} of=${refused} />` },
    { title: 'Action', of: ({ actions, name }: KeyEntry) => html`<${Actions} of=${actions} name=${name} />` },
  ];
  return html`<${Table} label=${label} columns=${columns} rows=${keys} keyOf=${(one: KeyEntry) => one.id} empty=${empty} />`;
}

function Name({ of: { id, name, status, expires_at, revoked_at } }: { of: KeyEntry }): VNode {
  const ends = status === 'active' && expires_at !== null;
  return html`<${Foreign} text=${name} /><br /><span class="soft mono">${id}</span>
    ${ends && html`<br /><span class="soft">ends <${Age} at=${expires_at} /></span>`}
    ${status !== 'active' && html`<br /><span class="soft">${status} <${Age} at=${revoked_at ?? expires_at} /></span>`}`;
}

function Rights({ of: { subscriptions, scopes, allow_addresses } }: { of: KeyEntry }): VNode {
  return html`${subscriptions.join(', ') || 'no subscription'}<br /><span class="soft">${scopes.join(', ')}</span>
    ${allow_addresses.length > 0 && html`<br /><span class="soft">only from ${allow_addresses.join(', ')}</span>`}`;
}

/** How far it is behind, in rows and minutes, and since when it is silent. */
export function Following({ of }: { of: Follower | null }): VNode {
  if (of === null) return html`<span class="soft">never</span>`;
  const { rows_behind, minutes_behind, silent_since, behind } = of;
  const age = minutes_behind === 0 ? '' : `, ${span(minutes_behind * 60_000)}`;
  const [mark, text]: readonly [MarkName, string] = behind
    ? ['warning', `${count(rows_behind, 'row')} behind${age}`]
    : ['done', rows_behind === 0 ? 'caught up' : `${count(rows_behind, 'row')} to read${age}`];
  return html`<${State} name=${mark}>${text}</${State}><br /><span class="soft">${behind ? 'silent since' : 'last used'} <${Age} at=${silent_since} /></span>`;
}

function Refused({ of }: { of: KeyEntry['refused'] }): VNode {
  if (of.length === 0) return html`<span class="soft">none</span>`;
  return html`${of.map(({ code, count: times, last_at }) => html`<div>${count(times)} <code>${code}</code> <span class="soft"><${Age} at=${last_at} /></span></div>`)}`;
}
