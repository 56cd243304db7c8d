/** The audit trail, and the log of operations on detections. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { AuditEntry, AuditPage, OperationsPage } from '../admin/console/api-records.ts';
import { shown } from './format.ts';
import { choices, PERIOD } from './forms.ts';
import { list } from './list.ts';
import { choice, foreign, members, soft, when } from './parts.ts';
import { go, linkTo, type Route } from './route.ts';

const SUBJECTS = ['installation', 'account', 'subscription', 'key', 'ingest', 'operation', 'console', 'log'];
const LISTS = [
  ['audit', 'Audit trail'],
  ['detections', 'Log of operations'],
] as const;

export function History({ route }: { route: Route }): VNode {
  const isLog = route.parameters.get('of') === 'detections';
  const choose = (of: string) => go(linkTo('history', { of }));
  return html`<div class="row bar">${choice('Of what', isLog ? 'detections' : 'audit', LISTS, choose)}</div>
    ${isLog ? operations(route) : auditTrail(route)}`;
}

function auditTrail(route: Route): VNode {
  return list<AuditPage, AuditEntry>({
    title: 'Audit trail',
    help: 'operations',
    path: '/console/history/audit',
    topics: ['customers', 'jobs'],
    route,
    fields: [
      ...PERIOD,
      { name: 'actor', label: 'By' },
      { name: 'subject', label: 'What', options: choices('anything', SUBJECTS) },
      { name: 'id', label: 'Id' },
    ],
    rowsOf: ({ entries }) => entries,
    columns: [
      ['Time (UTC)', ({ at }) => when(at)],
      ['By', actor],
      ['What', ({ subject, id }) => [subject, ' ', foreign(`${id ?? ''}`, 'mono')]],
      ['Change', ({ change }) => foreign(change)],
      ['From and to', ({ members }) => Object.entries(members).map(change), 'wide'],
    ],
    key: ({ entry, subject, id, change }) => `${entry} ${subject} ${id} ${change}`,
    empty: 'Nothing.',
  });
}

function actor({ actor: name, sudo_user, kind, command }: AuditEntry): VNode {
  const person = html`${foreign(name)}${sudo_user !== null && html` (${foreign(sudo_user)})`}<br />`;
  return html`${name !== null && person}${soft([kind, command !== null && [': ', foreign(command)]])}`;
}

function change([name, { from, to }]: [string, { readonly from: unknown; readonly to: unknown }]): VNode {
  const before = from !== undefined && from !== null && html`${foreign(shown(from), 'mono')} → `;
  return html`<div>${soft(name)} ${before}${foreign(shown(to), 'mono')}</div>`;
}

function operations(route: Route): VNode {
  return list<OperationsPage, OperationsPage['entries'][number]>({
    title: 'Log of operations',
    help: 'log-format',
    path: '/console/history/operations',
    route,
    fields: [...PERIOD, { name: 'kind', label: 'Kind' }],
    kept: { of: 'detections' },
    rowsOf: ({ entries }) => entries,
    columns: [
      ['Time (UTC)', ({ at }) => when(at)],
      ['Entry', ({ entry }) => `${entry}`, 'number'],
      ['Kind', ({ kind }) => kind],
      ['Of', ({ operation }) => members(operation), 'wide'],
    ],
    key: ({ entry }) => entry,
    empty: 'Nothing.',
  });
}
