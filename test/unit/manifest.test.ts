import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { commandIds, contextKeys, labPanelType, panelType, section, settingNames, viewIds } from '../../src/editor/manifest';
import { apis } from '../../src/probe/endpoint';
import { defaultProbeSettings, readProbeSettings } from '../../src/probe/plan';
import { sloPresets } from '../../src/report/goodput';

const root = path.resolve(__dirname, '../..');

interface Setting {
  readonly type?: unknown;
  readonly default?: unknown;
  readonly description?: string;
  readonly markdownDescription?: string;
  readonly scope?: string;
  readonly properties?: Readonly<Record<string, Setting & { readonly enum?: readonly string[] }>>;
  readonly items?: Setting;
}

interface MenuItem {
  readonly command: string;
  readonly when?: string;
  readonly group?: string;
}

interface Manifest {
  readonly engines: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly activationEvents: readonly string[];
  readonly categories: readonly string[];
  readonly keywords: readonly string[];
  readonly icon: string;
  readonly main: string;
  readonly capabilities: { readonly untrustedWorkspaces: { readonly supported: unknown; readonly description?: string; readonly restrictedConfigurations: readonly string[] } };
  readonly contributes: {
    readonly commands: readonly { readonly command: string; readonly title: string; readonly category: string; readonly icon?: string; readonly enablement?: string }[];
    readonly configuration: { readonly properties: Readonly<Record<string, Setting>> };
    readonly menus: Readonly<Record<string, readonly MenuItem[]>>;
    readonly views: Readonly<Record<string, readonly { readonly id: string; readonly icon: string }[]>>;
    readonly viewsWelcome: readonly { readonly view: string; readonly contents: string; readonly when?: string }[];
    readonly walkthroughs: readonly { readonly steps: readonly { readonly description: string; readonly media: { readonly markdown?: string }; readonly completionEvents: readonly string[] }[] }[];
  };
}

const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest;
const { contributes } = manifest;
const ids = Object.values(commandIds).sort();
const settings = Object.entries(contributes.configuration.properties);
const sources = readdirSync(path.join(root, 'src/editor')).map((name) => readFileSync(path.join(root, 'src/editor', name), 'utf8')).join('\n');

describe('the manifest', () => {
  it('declares the commands of manifest.ts and no others', () => {
    assert.deepEqual(contributes.commands.map(({ command }) => command).sort(), ids);
    for (const { title, category } of contributes.commands) {
      assert.equal(category, 'First Token');
      assert.match(title, /^[A-Z]/, title);
    }
  });

  it('says of every command when the palette shows it', () => {
    assert.deepEqual((contributes.menus['commandPalette'] ?? []).map(({ command }) => command).sort(), ids);
  });

  it('names only our commands in menus, welcome texts, walkthroughs', () => {
    const inMenus = Object.values(contributes.menus).flat().map(({ command }) => command);
    const text = JSON.stringify([contributes.viewsWelcome, contributes.walkthroughs]);
    const linked = [...text.matchAll(/(?:command:|onCommand:)(firstToken\.\w+)/g)].map((match) => match[1]!);
    assert.ok(linked.length > 5);
    for (const command of [...inMenus, ...linked]) assert.ok((ids as string[]).includes(command), command);
  });

  it('reads only context keys that we set', () => {
    const clauses = JSON.stringify([contributes.menus, contributes.viewsWelcome, contributes.commands, contributes.walkthroughs]);
    const read = new Set([...clauses.matchAll(/(?<![\w:.])!?(firstToken\.\w+)/g)].map((match) => match[1]!));
    const known = new Set<string>([...contextKeys, ...ids, ...Object.values(viewIds)]);
    for (const key of read) assert.ok(known.has(key), key);
    for (const key of contextKeys) {
      assert.ok(clauses.includes(key), `${key} is read by somebody`);
      assert.ok(sources.includes(`setContext('${key}'`), `${key} is set`);
    }
  });

  it('declares the settings of manifest.ts, each with type, default, description and scope, down to the last property', () => {
    assert.deepEqual(settings.map(([name]) => name).sort(), settingNames.map((name) => `${section}.${name}`).sort());
    const describe = (name: string, setting: Setting): void => {
      assert.ok(setting.type !== undefined, `${name} has a type`);
      assert.ok((setting.description ?? setting.markdownDescription ?? '').length > 3, `${name} has a description`);
      for (const [inner, property] of Object.entries(setting.properties ?? {})) describe(`${name}.${inner}`, property);
      for (const [inner, property] of Object.entries(setting.items?.properties ?? {})) describe(`${name}[].${inner}`, property);
    };
    for (const [name, setting] of settings) {
      describe(name, setting);
      assert.notEqual(setting.default, undefined, `${name} has a default`);
      assert.ok(['window', 'resource', 'machine'].includes(setting.scope ?? ''), `${name} has a scope`);
    }
  });

  it('has defaults that the engine takes, and the same as in the terminal', () => {
    const defaults = Object.fromEntries(settings.map(([name, setting]) => [name.slice(section.length + 1), setting.default]));
    assert.deepEqual(readProbeSettings(defaults['probe']), defaultProbeSettings);
    assert.deepEqual(defaults['slo'], sloPresets.chat);
    assert.deepEqual(defaults['endpoints'], []);
  });

  it('offers the APIs the engine speaks', () => {
    const endpoint = contributes.configuration.properties['firstToken.endpoints']?.items;
    assert.deepEqual(endpoint?.properties?.['api']?.enum, apis);
  });

  it('is limited in an untrusted workspace, whose endpoints and network do not count', () => {
    const { supported, description, restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
    assert.equal(supported, 'limited');
    assert.ok(description);
    assert.ok(restrictedConfigurations.includes('firstToken.endpoints') && restrictedConfigurations.includes('firstToken.network'));
    for (const name of restrictedConfigurations) assert.ok(name in contributes.configuration.properties, name);
  });

  it('activates at leisure, and for its panel', () => {
    assert.deepEqual([...manifest.activationEvents].sort(), ['onStartupFinished', `onWebviewPanel:${labPanelType}`, `onWebviewPanel:${panelType}`]);
  });

  it('keeps the types at the oldest editor it supports', () => {
    assert.equal(`^${manifest.devDependencies['@types/vscode']}`, manifest.engines['vscode']);
  });

  it('fits the marketplace: icon, categories, keywords, and files that exist', () => {
    const icon = readFileSync(path.join(root, manifest.icon));
    assert.ok(icon.readUInt32BE(16) >= 128 && icon.readUInt32BE(20) >= 128, 'icon of 128 pixels or more');
    assert.ok(manifest.keywords.length <= 10 && manifest.categories.length >= 1);
    const files = [...Object.values(contributes.views).flat().map(({ icon: file }) => file), ...contributes.walkthroughs.flatMap(({ steps }) => steps.flatMap(({ media }) => media.markdown ?? []))];
    for (const file of files) assert.ok(existsSync(path.join(root, file)), file);
    assert.deepEqual(Object.values(contributes.views).flat().map(({ id }) => id).sort(), Object.values(viewIds).sort());
  });

  it('has every word of the editor in l10n.t', () => {
    const bare = [...sources.matchAll(/show(?:Information|Warning|Error)Message\(\s*['"`]/g)];
    assert.deepEqual(bare.map((match) => match[0]), []);
  });
});
