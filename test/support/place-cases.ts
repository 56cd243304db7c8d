/** What every place of a copy must do, whichever kind it is. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { tryPlace } from '../../src/copy/open-place.ts';
import type { Place } from '../../src/copy/place.ts';

const bytes = (text: string) => Buffer.from(text);

/** @param open an empty place; further calls with it give the same one to another client */
type Open = () => Promise<{ readonly place: Place; readonly again: () => Promise<Place> }>;

type Case = (place: Place, again: () => Promise<Place>) => Promise<void>;

const CASES: Readonly<Record<string, Case>> = {
  'an object is created once, and read as it was': async (place, again) => {
    assert.equal(await place.create('log/0001/0000000000000001.zst', bytes('one')), true);
    assert.equal(await place.create('log/0001/0000000000000001.zst', bytes('two')), false);
    assert.equal(await place.create('log/0001/0000000000000001.zst', bytes('one')), false);
    assert.deepEqual(await (await again()).read('log/0001/0000000000000001.zst'), bytes('one'));
    assert.equal(await place.create('empty', bytes('')), true);
    assert.deepEqual(await place.read('empty'), bytes(''));
  },
  'of 20 callers, exactly one creates an object': async (place, again) => {
    assert.equal(await place.create('first', bytes('')), true);
    for (let round = 1; round <= 5; round++) {
      const places = await Promise.all(
        Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? place : again())),
      );
      const created = await Promise.all(places.map((one, at) => one.create(`race/${round}`, bytes(`${at}`))));
      assert.equal(created.filter(Boolean).length, 1);
      assert.deepEqual(await place.read(`race/${round}`), bytes(`${created.indexOf(true)}`));
    }
  },
  'more than 1,000 names are listed in order, after one, below a prefix': async (place) => {
    await place.create('access/1.db.zst', bytes('x'));
    const numbers = Array.from({ length: 1205 }, (_, at) => String(at * 7).padStart(6, '0'));
    const names = numbers.map((number) => `log/${number.slice(0, 4)}/${number}.zst`);
    const shuffled = names.toSorted(() => Math.random() - 0.5);
    for (let at = 0; at < shuffled.length; at += 40)
      await Promise.all(shuffled.slice(at, at + 40).map((name) => place.create(name, bytes(name))));
    for (const [prefix, after, expected] of [
      ['log/', '', names],
      ['', '', ['access/1.db.zst', ...names]],
      ['log/', names[100] ?? '', names.slice(101)],
      ['log/', 'log/0000/zzz', names.filter((name) => name > 'log/0000/zzz')],
      ['log/', names.at(-1) ?? '', []],
      ['log/00', '', names.filter((name) => name.startsWith('log/00'))],
      ['log', 'b', names],
      ['none/', '', []],
      ['log/', 'm', []],
      ['log/', 'a', names],
    ] as const)
      assert.deepEqual(await place.list(prefix, after), expected);
  },
  'names are in the order of their characters, across nested names': async (place) => {
    const names = ['a-b/x', 'a.b', 'a/b.c/d', 'a/b/c', 'a0', 'a_b/x', 'ab'];
    for (const name of names.toReversed()) assert.equal(await place.create(name, bytes(name)), true);
    assert.deepEqual(await place.list('', ''), names);
    assert.deepEqual(await place.list('a/', 'a/b.c/d'), ['a/b/c']);
    assert.deepEqual(await place.list('a', 'a/b/c'), ['a0', 'a_b/x', 'ab']);
  },
  'what is absent is null, also in folders that are not there; deleting it does nothing': async (place) => {
    await place.create('here', bytes('x'));
    assert.equal(await place.read('there'), null);
    assert.equal(await place.read('folder/there'), null);
    await place.delete('there');
    await place.delete('folder/there');
    await place.delete('here');
    assert.equal(await place.read('here'), null);
    assert.deepEqual(await place.list('', ''), []);
    assert.equal(await place.create('here', bytes('y')), true);
    assert.deepEqual(await place.read('here'), bytes('y'));
  },
  'an object of 20 MB': async (place) => {
    const content = randomBytes(20_000_000);
    assert.equal(await place.create('segments/1-2.zst', content), true);
    assert.ok((await place.read('segments/1-2.zst'))?.equals(content));
  },
  'a try leaves nothing': async (place) => {
    await tryPlace(place);
    assert.deepEqual(await place.list('', ''), []);
  },
};

/** Makes a test of each case. @param skip why they cannot run */
export function testPlaces(kind: string, open: Open, skip: string | false = false): void {
  for (const [name, run] of Object.entries(CASES)) {
    test(`${kind}: ${name}`, { skip }, async () => {
      const { place, again } = await open();
      await run(place, again);
    });
  }
}
