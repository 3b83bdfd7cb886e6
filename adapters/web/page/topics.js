/* SPDX-License-Identifier: MIT */

/* The topics. */

function historyOf(self, names) {
  const wanted = names.join(',');
  if (!wanted || (wanted === self.historyFor && Date.now() < self.historyUntil))
    return;
  self.historyFor = wanted;
  self.historyUntil = Date.now() + 15000;
  get('api/history' + query({topics: wanted})).then((told) => {
    self.history = told.topics;
    if (view === self && self.told) show(self.render());
  }, () => { self.historyUntil = 0; });
}

function topicsView() {
  const self = {name: 'topics', tab: 'topics', title: '', history: {}};
  const seen = {};
  const change = (values, isSame) => {
    const {q, sort, order, offset} = {...seen, offset: 0, ...values};
    return goTo(addressOf([''], {q, sort: sort === 'topic' ? '' : sort, order,
      offset: offset || ''}), isSame);
  };
  self.take = (fields) => {
    seen.q = fields.get('q') || '';
    seen.sort = fields.get('sort') || 'topic';
    seen.order = fields.get('order') || '';
    seen.offset = Number(fields.get('offset')) || 0;
    /* numbers begin with the largest, names with the first */
    seen.isUp = (seen.order === 'up') !== (seen.sort === 'topic');
  };
  const stateSort = () => STATES.includes(seen.sort) ? seen.sort : 'ready';
  const columns = () => [
    {name: 'Topic', cls: 'name', sort: 'topic', bare: true, cell: (row) => [
      h('a', {href: topicLink(row.topic)}, foreign(row.topic)),
      h('div', {class: 'under'}, badges(row))]},
    {name: 'Jobs, by ' + stateSort(), cls: 'states', sort: stateSort(),
      bare: true, cell: (row) =>
        row.away ? '' : [stateBar(row), counts(row)]},
    {name: 'Oldest ready', cls: 'num', sort: 'oldest', cell: (row) =>
      ageNode(row.oldest_ms)},
    {name: 'Rate', sort: 'rate', cell: (row) => h('div', {class: 'measure'},
      spark((self.history[row.topic] || {}).rate, 'Rate', rateText),
      h('span', {}, rateText(row.rate)))},
    {name: 'Lateness p99', sort: 'p99', cell: (row) =>
      h('div', {class: 'measure'},
        spark((self.history[row.topic] || {}).lateness_ms, 'Lateness',
          spanText),
        h('span', {}, spanText((row.lateness_ms || {}).p99)))},
    {label: 'Actions', bare: true, cell: (row) =>
      mayAct && pauseButton(row, 'tight')},
  ];
  self.load = async () => {
    self.told = await get('api/topics' + query({q: seen.q, offset: seen.offset,
      limit: PAGE, sort: seen.sort, order: seen.order}));
    historyOf(self, self.told.topics.map((row) => row.topic));
  };
  self.render = () => {
    const {told} = self, sums = told.sums, rows = told.topics;
    return [
      h('div', {class: 'title'}, h('h1', {}, 'Topics')),
      readOnly(),
      h('div', {class: 'tiles'},
        tile('topics', whole.format(sums.topics)),
        STATES.map((state) => tile(state, whole.format(sums[state]), state)),
        tile('done', rateText(sums.rate)),
        tile('oldest ready', ageNode(sums.oldest_ms)),
        sums.paused > 0 && tile('paused', whole.format(sums.paused))),
      h('div', {class: 'bar'},
        h('input', {type: 'search', id: 'search', 'data-type': 'search',
          value: seen.q,
          placeholder: 'Part of a name  ( / )', 'aria-label': 'Search topics',
          autocomplete: 'off', spellcheck: 'false'}),
        h('label', {class: 'quiet small'}, 'Sort by ', h('select',
          {'data-change': 'sort'}, [['topic', 'name'], ['oldest', 'oldest ready'],
            ['ready', 'ready'], ['scheduled', 'scheduled'],
            ['running', 'running'], ['dead', 'dead'], ['rate', 'rate'],
            ['p99', 'lateness'], ['dropped', 'dropped']].map(([value, text]) =>
            h('option', {value, selected: seen.sort === value}, text))))),
      h('div', {class: 'panel'}, rows.length === 0
        ? h('p', {class: 'empty'}, !told.complete ? 'Reading the topics …'
          : seen.q ? 'No topic has this in its name.'
            : 'There are no topics yet. weir add TOPIC makes one.')
        : table('Topics', columns(), rows, (row) => row.topic, seen)),
      pagesOf(told, rows.length),
    ];
  };
  self.search = (text) => change({q: text}, true);
  self.sortBy = (sort) => change(sort === seen.sort
    ? {order: seen.order === 'up' ? '' : 'up'} : {sort, order: ''});
  self.does = {
    sort: (value) => change({sort: value, order: ''}),
    pause: (topic) => pause(topic, true),
    resume: (topic) => pause(topic, false),
    next: () => change({offset: seen.offset + PAGE}),
    previous: () => change({offset: Math.max(0, seen.offset - PAGE)}),
  };
  return self;
}
