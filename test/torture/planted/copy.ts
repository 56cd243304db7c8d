/** Faults in the copy: two writers, parts that are lost or read twice, and what must be there before something else. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const COPY_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('copy/ship.ts', 'ship', {
    'return [-beyond.every((other) => other === name)-]{+true+};':
      'a number that was merged and deleted does not make a second writer',
    "if ([-found !== 'known' && (found !== 'before' || !noted.includes(last?.id ?? ''))-]{+false+})":
      'a copy that ends with an entry of another history is left alone',
    '{+await deleteBefore(this.place, generation, []);\n    +}if (await this.#claim(old.generation':
      'an old generation goes only once another takes its place',
    '[-throw new LogDamage(`the log ends before entry ${to.entry}`)-]{+return end+}':
      'a log with damage at its end is not copied',
  }),
  ...faultsIn('copy/source.ts', 'heal', {
    '[-!(await hasEntry(place, objects, mark))-]{+false+}':
      'a damaged log is made anew only from a copy with its newest entry',
  }),
  ...faultsIn('copy/follow.ts', 'promotion', {
    'took over.\n    if ([-this.isPromoted-]{+false+}) return;':
      'a machine that was promoted writes nothing behind another that took over',
  }),
  ...faultsIn('copy/keep.ts', 'keep', {
    '[-shipper.noteDamage();-]': 'a damaged copy is written anew',
  }),
  ...faultsIn('copy/ship.ts', 'own-copy', {
    '{+if (access !== null) this.#count(await writeAccess(this.place, access.state, access.content));\n      +}if (end !== null) await':
      'access.db of a copy is not newer than its log',
  }),
  ...faultsIn('copy/own-copy.ts', 'own-copy', {
    'if ([-!(await place.read(SECRET))?.equals(secret)-]{+false+})':
      'a copy with another secret is left alone',
    'if ([-before > change-]{+false+})': 'a later access.db of a copy is left alone',
  }),
  ...faultsIn('copy/back-up.ts', 'pending-entry', {
    "[-if (mark !== null && placeOf(log, mark) === 'known') return mark;-]":
      'a copy has no entry that the database refused',
  }),
];
