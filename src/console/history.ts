/** Who changed what (the audit trail), and what was done to detections (the log of operations). */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { AuditEntry, AuditPage, OperationsPage } from '../admin/console/api-records.ts';
import { shown } from './file-report.ts';
import { type Field, Filters, Pages, usePages, valuesOf } from './list.ts';
import { Choice, Foreign, Heading, Panel, Table, When } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';

const SUBJECTS = ['installation', 'account', 'subscription', 'key', 'ingest', 'operation', 'console', 'log'];
const PERIOD: readonly Field[] = [
  { name: 'from', label: 'From (UTC)', type: 'date' },
  { name: 'to', label: 'before', type: 'date' },
];
const AUDIT_FIELDS: readonly Field[] = [
  ...PERIOD,
  { name: 'actor', label: 'By' },
  {
    name: 'subject',
    label: 'What',
    options: [['', 'anything'], ...SUBJECTS.map((one) => [one, one] as const)],
  },
  { name: 'id', label: 'Id' },
];
const OPERATION_FIELDS: readonly Field[] = [...PERIOD, { name: 'kind', label: 'Kind' }];

export function History({ route }: { route: Route }): VNode {
  const isLog = route.parameters.get('of') === 'detections';
  const choose = (of: string) => go(linkTo('history', { of: of === 'detections' ? of : null }));
  return html`<${Heading}>History</${Heading}>
    <div class="bar"><${Choice} label="Of what" value=${isLog ? 'detections' : 'audit'} options=${[['audit', 'Audit trail'], ['detections', 'Log of operations']]} onChoose=${choose} /></div>
    ${isLog ? html`<${Operations} route=${route} />` : html`<${Audit} route=${route} />`}`;
}

function Audit({ route }: { route: Route }): VNode {
  const pages = usePages<AuditPage>(`/console/history/audit${queryOf(valuesOf(AUDIT_FIELDS, route))}`, [
    'customers',
    'jobs',
  ]);
  const columns = [
    { title: 'Time (UTC)', of: ({ at }: AuditEntry) => html`<${When} at=${at} />` },
    { title: 'By', of: (one: AuditEntry) => html`<${Actor} of=${one} />` },
    {
      title: 'What',
      of: ({ subject, id }: AuditEntry) =>
        html`${subject}${id !== null && html` <span class="mono"><${Foreign} text=${`${id}`} /></span>`}`,
    },
    { title: 'Change', of: ({ change }: AuditEntry) => html`<${Foreign} text=${change} />` },
    {
      title: 'From and to',
      class: 'wide',
      of: ({ members }: AuditEntry) => html`<${Members} of=${members} />`,
    },
  ];
  return html`<${Panel} title="Audit trail" help="operations">
    <${Filters} fields=${AUDIT_FIELDS} route=${route} />
    <${Pages} of=${pages}>${(
      all: readonly AuditPage[],
    ) => html`<${Table} label="Audit trail" columns=${columns} rows=${all.flatMap(({ entries }) => entries)}
      keyOf=${(one: AuditEntry) => `${one.entry} ${one.subject} ${one.id} ${one.change}`} empty="Nothing." />`}</${Pages}>
  </${Panel}>`;
}

function Actor({ of: { actor, sudo_user, kind, command } }: { of: AuditEntry }): VNode {
  return html`${actor !== null && html`<${Foreign} text=${actor} />`}${sudo_user !== null && html` (<${Foreign} text=${sudo_user} />)`}
    <br /><span class="soft">${kind}${command !== null && html`: <${Foreign} text=${command} />`}</span>`;
}

function Members({ of }: { of: AuditEntry['members'] }): VNode {
  return html`${Object.entries(of).map(
    ([name, { from, to }]) =>
      html`<div><span class="soft">${name}</span> ${from !== undefined && from !== null && html`<${Foreign} text=${shown(from)} class="mono" /> → `}<${Foreign} text=${shown(to)} class="mono" /></div>`,
  )}`;
}

type OperationEntry = OperationsPage['entries'][number];

function Operations({ route }: { route: Route }): VNode {
  const pages = usePages<OperationsPage>(
    `/console/history/operations${queryOf(valuesOf(OPERATION_FIELDS, route))}`,
  );
  const columns = [
    { title: 'Time (UTC)', of: ({ at }: OperationEntry) => html`<${When} at=${at} />` },
    { title: 'Entry', isNumber: true, of: ({ entry }: OperationEntry) => `${entry}` },
    { title: 'Kind', of: ({ kind }: OperationEntry) => kind },
    {
      title: 'Of',
      class: 'wide',
      of: ({ operation }: OperationEntry) =>
        Object.entries(operation).map(
          ([name, value]) =>
            html`<span class="member"><span class="soft">${name}</span> <${Foreign} text=${shown(value)} class="mono" /></span> `,
        ),
    },
  ];
  return html`<${Panel} title="Log of operations" help="log-format">
    <${Filters} fields=${OPERATION_FIELDS} route=${route} kept=${{ of: 'detections' }} />
    <${Pages} of=${pages}>${(all: readonly OperationsPage[]) => html`<${Table} label="Log of operations" columns=${columns} rows=${all.flatMap(({ entries }) => entries)} keyOf=${(one: OperationEntry) => one.entry} empty="Nothing." />`}</${Pages}>
  </${Panel}>`;
}
