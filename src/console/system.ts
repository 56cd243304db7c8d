/** What the appliance stands on: disks, database, log, backup, verification, version. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Overview } from '../admin/console/api.ts';
import { bytes, count } from './format.ts';
import { Age, type Children, type MarkName, Panel, State } from './parts.ts';

const DISK_LOW = 0.05;

export function System({ of }: { of: Overview }): VNode {
  const { database, disks, version } = of;
  return html`<${Panel} title="System" help="growth"><dl class="fact-list">
    ${disks.map(({ folder, free_bytes, bytes: all }) => html`<${Fact} key=${folder} title="Disk" mark=${free_bytes < all * DISK_LOW ? 'warning' : 'done'}>${bytes(free_bytes)} free of ${bytes(all)}<span class="soft mono"> ${folder}</span></${Fact}>`)}
    <${Fact} title="Database">${bytes(database.bytes)}, ${count(database.versions, 'version')} of detections</${Fact}>
    <${Fact} title="Log">${bytes(database.log_bytes)}</${Fact}>
    <${Backup} of=${of.backup} />
    <${Scrub} of=${of.scrub} />
    <${Fact} title="Version">${version}</${Fact}>
  </dl></${Panel}>`;
}

function Fact({ title, mark, children }: { title: string; mark?: MarkName; children?: Children }): VNode {
  return html`<div><dt>${title}</dt><dd>${mark === undefined ? children : html`<${State} name=${mark}>${children}</${State}>`}</dd></div>`;
}

function Backup({ of }: { of: Overview['backup'] }): VNode {
  if (of === null) return html`<${Fact} title="Backup" mark="warning">none is scheduled</${Fact}>`;
  const { newest_at, rehearsed_at } = of;
  return html`<${Fact} title="Backup" mark=${newest_at === null ? 'warning' : 'done'}><${Age} at=${newest_at} never="none yet" /><span class="soft">, restore rehearsed <${Age} at=${rehearsed_at} /></span></${Fact}>`;
}

function Scrub({ of }: { of: Overview['scrub'] }): VNode {
  if (of === null) return html`<${Fact} title="Verified">not yet</${Fact}>`;
  const { at, findings, not_compared } = of;
  const result = findings > 0 ? count(findings, 'difference') : (not_compared ?? 'no difference');
  return html`<${Fact} title="Verified" mark=${findings > 0 ? 'failed' : 'done'}><${Age} at=${at} />, ${result}</${Fact}>`;
}
