/* SPDX-License-Identifier: MIT */

/* A topic: its jobs by state, its groups, its options. */

const TOTALS = ['added', 'done', 'retried', 'failed', 'expired', 'crashed',
  'dropped'];

/* A moment that a reader put into a field, in the reader's zone. */
const momentOf = (text) => text ? new Date(text).getTime() : undefined;

const jobColumns = {
  id: {name: 'Id', cls: 'name', bare: true, cell: (job) =>
    h('a', {href: jobLink(job.topic, job.id)}, foreign(job.id, 'id'))},
  group: {name: 'Group', cell: (job) => foreign(job.group || '', 'id')},
  due: {name: 'Due', cell: (job) => timeNode(job.due_ms)},
  died: {name: 'Died', cell: (job) => timeNode(job.due_ms)},
  attempt: {name: 'Attempt', cls: 'num', cell: (job) => String(job.attempt)},
  why: {name: 'Reason', cls: 'text', cell: (job) =>
    [job.reason && h('b', {}, visible(job.reason)), job.reason && job.error &&
      ': ', job.error && foreign(job.error)]},
  error: {name: 'Last error', cls: 'text', cell: (job) =>
    job.error ? foreign(job.error) : ''},
  size: {name: 'Body', cls: 'num', cell: (job) => sizeText(job.body_bytes)},
};

function columnsOf(state, isBounded, picked) {
  const pick = {name: '', bare: true, cell: (job) => h('input', {
    type: 'checkbox', 'data-change': 'pick', value: job.id,
    'aria-label': 'Choose ' + visible(job.id), checked: picked.has(job.id)})};
  const {id, group, due, died, attempt, why, error, size} = jobColumns;
  return [
    state === 'dead' && mayAct && pick, id, isBounded && group,
    (state === 'scheduled' || state === 'ready') && due,
    state === 'dead' && died, attempt,
    state === 'dead' ? why : error, size].filter(Boolean);
}

/* What was looked for; the same text is kept while the reader types. */
function jobSearch(topic) {
  return h('form', {class: 'inline', 'data-form': 'open'},
    h('input', {type: 'search', id: 'search', name: 'id', maxlength: 128,
      placeholder: 'Id of a job  ( / )', 'aria-label': 'Id of a job in ' + topic,
      autocomplete: 'off', spellcheck: 'false'}),
    h('button', {}, 'Open'));
}

function groupsPanel(groups) {
  return h('div', {class: 'panel'},
    h('h2', {}, 'Why they died'),
    table('Dead jobs by reason', [
      {name: 'Reason', cls: 'text', bare: true, cell: (group) =>
        [h('b', {}, visible(group.reason || 'unknown')),
          group.error && [': ', foreign(group.error)]]},
      {name: 'Jobs', cls: 'num', cell: (group) => whole.format(group.count)},
      {name: 'First', cell: (group) => timeNode(group.first_ms)},
      {name: 'Last', cell: (group) => timeNode(group.last_ms)},
      {name: '', bare: true, cell: (group) => mayAct && [
        button('Requeue', 'requeueGroup', group.key, 'tight'), ' ',
        button('Delete', 'deleteGroup', group.key, 'tight danger')]},
    ], groups.groups, (group) => group.key),
    !groups.complete && h('p', {class: 'notice'},
      `Of the oldest ${whole.format(groups.looked_at)} dead jobs.`),
    groups.others > 0 && h('p', {class: 'notice'},
      `${whole.format(groups.others)} more died in other ways.`));
}

function topicView(topic, asked) {
  const tabs = STATES.concat('groups', 'workers', 'options');
  const self = {tab: 'topics', title: topic, up: '#/', history: {},
    places: [''], picked: new Set()};
  const path = topicPath(topic);
  const isBounded = () => self.row && self.row.kind === 'bounded';
  const stateTab = () => STATES.includes(self.at);

  async function loadTab() {
    self.jobs = self.options = self.groups = null;
    self.filterError = '';
    if (stateTab())
      self.jobs = await get(path + '/jobs' + query({state: self.at,
        after: self.places.at(-1), limit: PAGE, where: self.where}))
        .catch((error) => {
          if (error.status !== 400) throw error;
          self.filterError = error.message;
          return null;
        });
    if (self.at === 'options') self.options = (await get(path + '/options')).options;
    if (self.at === 'workers')
      self.workers = (await get('api/workers' + query({topic}))).workers;
    if (self.at === 'dead' && self.places.length === 1 && self.row.dead > 0)
      self.groups = await get(path + '/groups');
    if (self.at === 'groups') self.groups = await get(path + '/groups?by=group');
  }

  self.load = async () => {
    self.told = await get(path);
    self.row = self.told.topic;
    if (!self.at)
      self.at = tabs.includes(asked) ? asked
        : STATES.find((state) => state === 'ready' && self.row.ready > 0) ||
          STATES.find((state) => self.row[state] > 0) || 'ready';
    const isDue = !self.tabRead || Date.now() - self.tabRead > 2000;
    if (isDue || self.isChanged) {
      self.isChanged = false;
      await loadTab();
      self.tabRead = Date.now();
    }
    historyOf(self, [topic]);
  };

  function tabPanel() {
    if (self.at === 'options') return optionsPanel(self.options || {});
    if (self.at === 'workers') return serversPanel(self.workers || []);
    if (self.at === 'groups') return eventsPanel(self.groups);
    const jobs = (self.jobs ? self.jobs.jobs : [])
      .map((job) => ({...job, topic}));
    return [
      h('div', {class: 'bar'}, jobSearch(topic), whereSearch(self),
        h('span', {class: 'grow'}),
        self.at === 'dead' && mayAct && self.row.dead > 0 && [
          self.picked.size > 0 && [
            button(`Requeue ${self.picked.size} chosen`, 'requeuePicked', ''),
            button(`Delete ${self.picked.size} chosen`, 'deletePicked', '',
              'danger')],
          button('Requeue …', 'requeueMany', '', 'main'),
          button('Delete …', 'deleteMany', '', 'danger')]),
      self.jobs && self.jobs.failed > 0 && h('p', {class: 'notice'},
        `The filter failed on ${plural(self.jobs.failed, 'job')}.`),
      self.filterError && h('p', {class: 'problem', role: 'alert'},
        visible(self.filterError)),
      self.groups && self.groups.groups.length > 0 && groupsPanel(self.groups),
      h('div', {class: 'panel'}, jobs.length === 0
        ? h('p', {class: 'empty'}, self.where
          ? `No job here that is ${self.at} matches` + (self.jobs &&
            self.jobs.next ? ' on this page: see the next one.' : '.')
          : `No job is ${self.at}.`)
        : table(`Jobs that are ${self.at}`,
          columnsOf(self.at, isBounded(), self.picked), jobs,
          (job) => 'j' + job.id)),
      pages(self.places.length > 1, Boolean(self.jobs && self.jobs.next),
        jobs.length ? `Page ${self.places.length}` : ''),
    ];
  }

  self.render = () => {
    const {row} = self;
    if (row.away)
      return [h('h1', {}, foreign(topic)), h('p', {class: 'problem'},
        'The node that has this topic does not answer.')];
    const hour = self.history[topic] || {};
    const late = row.lateness_ms || {};
    return [
      h('p', {class: 'crumbs'}, h('a', {href: '#/'}, 'Topics')),
      h('div', {class: 'title'}, h('h1', {}, foreign(topic)), badges(row),
        mayAct && h('div', {class: 'actions'}, pauseButton(row))),
      readOnly(),
      h('div', {class: 'tiles'},
        STATES.map((state) => tile(state, countText(row, state, whole), state)),
        tile('oldest ready', ageNode(row.oldest_ms)),
        row.relaying > 0 && tile('relaying', whole.format(row.relaying)),
        row.dropped && [['overflow', 'dropped, full'], ['age', 'dropped, old'],
          ['ttl', 'dropped, idle']].map(([why, name]) =>
          tile(name, short.format(row.dropped[why])))),
      h('p', {class: 'totals'}, 'Since it exists: ', TOTALS.map((name, i) =>
        [i > 0 && ' · ', h('b', {}, whole.format(row[name + '_total'])), ' ',
          name])),
      h('div', {class: 'plots'},
        plot('Done', hour.rate, rateText, row.rate),
        plot('Lateness p99', hour.lateness_ms, spanText, late.p99)),
      h('div', {role: 'tablist', 'aria-label': 'Jobs by state'}, tabs
        .filter((tab) => tab !== 'groups' || isBounded())
        .map((tab) => h('button', {role: 'tab', type: 'button', 'data-do': 'tab',
          'data-with': tab, id: 'tab-' + tab, tabindex: tab === self.at ? 0 : -1,
          'aria-selected': String(tab === self.at), 'aria-controls': 'jobs'},
        STATES.includes(tab) && shape(tab),
        tab[0].toUpperCase() + tab.slice(1),
        STATES.includes(tab) && h('span', {class: 'quiet'},
          countText(row, tab, short))))),
      h('div', {role: 'tabpanel', id: 'jobs', 'aria-labelledby': 'tab-' + self.at},
        tabPanel()),
    ];
  };

  const reread = () => {
    self.isChanged = true;
    return refresh();
  };
  const many = async (word, verb, done, body) => {
    const told = await post(path + '/dead/count', body)
      .catch((error) => say(error.message, true));
    if (!told) return;
    const failed = told.failed > 0
      ? `The filter failed on ${plural(told.failed, 'job')}.` : '';
    if (told.found === 0) return say('No dead job matches. ' + failed, failed);
    const ok = await question(`${verb} ${plural(told.found, 'dead job')}?`, [
      body.where && h('p', {}, 'Only where ', foreign(body.where, 'id')),
      failed && h('p', {class: 'problem'}, failed, ' They stay as they are.'),
      h('p', {}, word === 'delete' ? 'They are gone for good then.'
        : 'They become ready now, their attempts count from 0.')],
    verb, word === 'delete');
    if (!ok) return;
    self.isChanged = true;
    await act(`${path}/dead/${word}`, body, (result) =>
      `${plural(result[done], 'job')} ${done}` + (result[done] < result.found
        ? `; ${result.found - result[done]} had moved` : ''));
  };
  const ask_which = async (word, verb, done) => {
    const fields = await question(verb + ' dead jobs', [
      h('label', {class: 'field'}, 'Why they died', h('select', {name: 'group'},
        h('option', {value: ''}, 'for any reason'),
        (self.groups ? self.groups.groups : []).map((group) =>
          h('option', {value: group.key}, visible(group.reason +
            (group.error ? ': ' + group.error : '')).slice(0, 80))))),
      h('label', {class: 'field'}, 'Died since (your time)', h('input',
        {type: 'datetime-local', name: 'since', step: 1})),
      h('label', {class: 'field'}, 'Died before (your time)', h('input',
        {type: 'datetime-local', name: 'until', step: 1})),
      whereField(self.where)], 'Count them');
    if (!fields) return;
    const body = {group: fields.group || undefined,
      since_ms: momentOf(fields.since), until_ms: momentOf(fields.until),
      where: fields.where || undefined};
    if (Object.values(body).every((value) => value === undefined))
      body.all = true;
    await many(word, verb, done, body);
  };
  const picked = async (word, verb, done) => {
    const ids = [...self.picked];
    const ok = await question(`${verb} ${plural(ids.length, 'dead job')}?`, '',
      verb, word === 'delete');
    if (!ok) return;
    self.picked.clear();
    for (const box of document.querySelectorAll('[data-change="pick"]'))
      box.checked = false;
    self.isChanged = true;
    await act(`${path}/dead/${word}`, {ids}, (result) =>
      `${plural(result[done], 'job')} ${done}`);
  };
  self.does = {
    pause: () => pause(topic, true),
    resume: () => pause(topic, false),
    tab: (tab) => {
      Object.assign(self, {at: tab, places: ['']});
      self.picked.clear();
      history.replaceState(null, '', topicLink(topic, tab));
      return reread();
    },
    next: () => {
      if (!self.jobs || !self.jobs.next) return null;
      self.places.push(self.jobs.next);
      return reread();
    },
    previous: () => {
      if (self.places.length > 1) self.places.pop();
      return reread();
    },
    pick: (id, box) => {
      if (box.checked) self.picked.add(id);
      else self.picked.delete(id);
      show(self.render());
    },
    requeueGroup: (key) => many('requeue', 'Requeue', 'requeued',
      {group: key, where: self.where || undefined}),
    deleteGroup: (key) => many('delete', 'Delete', 'deleted',
      {group: key, where: self.where || undefined}),
    requeueMany: () => ask_which('requeue', 'Requeue', 'requeued'),
    deleteMany: () => ask_which('delete', 'Delete', 'deleted'),
    requeuePicked: () => picked('requeue', 'Requeue', 'requeued'),
    deletePicked: () => picked('delete', 'Delete', 'deleted'),
    unset: (name) => {
      self.isChanged = true;
      return act(path + '/options', {[name]: ''}, `${name} is as by default`);
    },
  };
  self.forms = {
    open: (fields) => {
      if (fields.id) location.hash = jobLink(topic, fields.id.trim());
    },
    where: (fields) => {
      Object.assign(self, {where: fields.where.trim(), places: ['']});
      self.picked.clear();
      return reread();
    },
    set: async (fields, form) => {
      self.isChanged = true;
      const done = await act(path + '/options', {[fields.name]: fields.value},
        `${fields.name} is ${fields.value}; workers follow within 5 s, but ` +
        'those whose flags say otherwise');
      if (done) form.reset();
    },
  };
  return self;
}

/* A jq program over a job as weir show --json prints it. */
const whereField = (text) => h('label', {class: 'field'},
  'Where (a jq program over the job)', h('input', {name: 'where', value: text,
    autocomplete: 'off', spellcheck: 'false', class: 'id',
    placeholder: '.body.tenant == "north"'}));

const whereSearch = (self) => h('form', {class: 'inline', 'data-form': 'where'},
  h('input', {type: 'search', name: 'where', id: 'where', class: 'id',
    placeholder: 'where: .body.tenant == "north"', value: self.where,
    'aria-label': 'Only jobs of which this jq program is true',
    autocomplete: 'off', spellcheck: 'false'}),
  h('button', {}, 'Filter'));

function optionsPanel(options) {
  const rows = Object.entries(options).map(([name, value]) => ({name, value}));
  return [
    h('div', {class: 'panel'}, rows.length === 0
      ? h('p', {class: 'empty'}, 'Nothing is stored with this topic: workers ' +
        'serve it as their files and flags say.')
      : table('Options', [
        {name: 'Option', cls: 'name', bare: true, cell: (row) => foreign(row.name)},
        {name: 'Value', cls: 'text', cell: (row) => foreign(row.value, 'id')},
        {name: '', bare: true, cell: (row) => mayAct && row.name !== 'kind' &&
          button('Remove', 'unset', row.name, 'tight',
            {'aria-label': 'Remove ' + row.name})},
      ], rows, (row) => row.name)),
    mayAct && h('form', {class: 'bar', 'data-form': 'set'},
      h('input', {name: 'name', required: true, placeholder: 'concurrency',
        'aria-label': 'Name of an option', autocomplete: 'off', spellcheck: 'false'}),
      h('input', {name: 'value', required: true, placeholder: '10',
        'aria-label': 'Its value', autocomplete: 'off', spellcheck: 'false'}),
      h('button', {}, 'Set'),
      h('span', {class: 'quiet small'}, 'for every worker; ',
        'docs/configuration.md has all options')),
  ];
}

function eventsPanel(groups) {
  return [h('div', {class: 'panel'}, !groups || groups.groups.length === 0
    ? h('p', {class: 'empty'}, 'No event waits.')
    : table('Events by group', [
      {name: 'Group', cls: 'name', bare: true, cell: (group) =>
        foreign(group.group, 'id')},
      {name: 'Events', cls: 'num', cell: (group) => whole.format(group.count)},
      {name: 'Oldest', cell: (group) => timeNode(group.first_ms)},
      {name: 'Newest', cell: (group) => timeNode(group.last_ms)},
    ], groups.groups, (group) => group.key)),
  groups && !groups.complete && h('p', {class: 'notice'},
    `Of the first ${whole.format(groups.looked_at)} events.`)];
}
