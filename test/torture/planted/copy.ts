/** Faults in the copy: two writers, parts that are lost or read twice, and what must be there before something else. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const COPY_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('copy/ship.ts', 'ship', {
    'return [-beyond.every((other) => other.name === name)-]{+true+};':
      'a number that was merged and deleted does not make a second writer',
    "if ([-found !== 'known' && (found !== 'before' || !noted.includes(last?.id ?? ''))-]{+false+})":
      'a copy that ends with an entry of another history is left alone',
    '{+await deleteBefore(this.place, { generation, begunBy: null, changes: [], objects: [] });\n    +}if (await this.#claim(old.generation':
      'an old generation goes only once another takes its place',
  }),
  ...faultsIn('copy/source.ts', 'heal', {
    'if (mark !== null && [-!(await hasEntry(place, objects, mark))-]{+false+})':
      'a damaged log is made anew only from a copy with its newest entry',
  }),
  ...faultsIn('copy/follow.ts', 'promotion', {
    'took over.\n    if ([-this.isPromoted-]{+false+}) return;':
      'a machine that was promoted writes nothing behind another that took over',
    'await readCopiedAccess(place[-, change-])': 'a standby knows no access.db that is newer than its log',
    'isBehind || ([-isOther && begin !== undefined && begin.firstEntry < first-]{+known !== null && isOther+}))':
      'rows that were removed while a standby was stopped are gone from its log',
    'if ({+false && +}isOther && end': 'a machine whose entries the copy lacks is no standby of it',
  }),
  ...faultsIn('copy/ship.ts', 'own-copy', {
    '{+await writeAccess(this.place, state, content);\n    +}while (!(await this.#shipLog(end)))':
      'access.db of a copy is not newer than its log',
  }),
  ...faultsIn('copy/own-copy.ts', 'own-copy', {
    'if ([-owner.secret_sha256 !== secret_sha256-]{+false+})': 'a copy with another secret is left alone',
  }),
  ...faultsIn('store/database-errors.ts', 'damage-between-threads', {
    "[-code === 'DATABASE_DAMAGE'-]{+error instanceof DatabaseDamage+}":
      'damage that a thread found is made good, and not the end of ingest',
  }),
  ...faultsIn('admin/thread.ts', 'standby', {
    "if ([-role !== 'writer'-]{+false+}) throw refusedBy(": 'only the writer changes accounts and keys',
  }),
];
