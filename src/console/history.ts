/** The audit trail. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { AuditedChange, AuditPage } from '../admin/console/api.ts';
import { actorText } from '../auth/actor.ts';
import { useList } from './forms.ts';
import { foreign, soft, state, value, when } from './inline.ts';
import type { Route } from './route.ts';

export function History({ route }: { route: Route }): VNode {
  return useList<AuditPage, AuditedChange>({
    label: 'Audit trail',
    help: 'operations',
    path: '/console/history/audit',
    topics: ['customers', 'jobs'],
    route,
    fields: [
      { name: 'from', label: 'From (UTC)', type: 'date' },
      { name: 'to', label: 'Before (UTC)', type: 'date' },
      { name: 'words', label: 'Contains' },
    ],
    rowsOf: ({ entries }) => entries,
    noteOf: ({ warning }) => warning !== null && html`<p>${state('warning', warning)}</p>`,
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

const actor = ({ kind, command, ...by }: AuditedChange): VNode =>
  html`${by.actor !== null && html`${foreign(actorText(by))}<br />`}${soft([kind, command !== null && [': ', foreign(command)]])}`;

const change = ([name, { from, to }]: [string, AuditedChange['members'][string]]): VNode =>
  html`<div>${soft(name)} ${from !== undefined && from !== null && html`${value(from)} → `}${value(to)}</div>`;
