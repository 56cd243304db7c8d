/** The audit trail, and the log of operations on detections. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { AuditedChange, AuditPage, OperationsPage } from '../admin/console/api.ts';
import { actorText } from '../auth/actor.ts';
import { choices, PERIOD, useList } from './forms.ts';
import { foreign, members, soft, value, when } from './inline.ts';
import { choice } from './parts.ts';
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
    <${isLog ? Operations : AuditTrail} route=${route} />`;
}

function AuditTrail({ route }: { route: Route }): VNode {
  return useList<AuditPage, AuditedChange>({
    label: 'Audit trail',
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

function actor({ kind, command, ...by }: AuditedChange): VNode {
  return html`${by.actor !== null && html`${foreign(actorText(by))}<br />`}${soft([kind, command !== null && [': ', foreign(command)]])}`;
}

function change([name, { from, to }]: [string, AuditedChange['members'][string]]): VNode {
  return html`<div>${soft(name)} ${from !== undefined && from !== null && html`${value(from)} → `}${value(to)}</div>`;
}

function Operations({ route }: { route: Route }): VNode {
  return useList<OperationsPage, OperationsPage['entries'][number]>({
    label: 'Log of operations',
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
