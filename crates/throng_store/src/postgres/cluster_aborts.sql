-- A player whose next match is not open yet goes home until then: that match may be on a node that needs long for it.
CREATE OR REPLACE FUNCTION cluster_travels(_node INTEGER, _run BIGINT, _at_ms BIGINT)
    RETURNS TABLE (_player BIGINT, _match_epoch BIGINT, _match_nth BIGINT, _home_node INTEGER, _home_scene TEXT, _to_node INTEGER,
        _to_run BIGINT) LANGUAGE sql STABLE AS $$
    SELECT member.player, played.epoch, played.nth, member.home_node, member.home_scene,
        coalesce(host.node, home.node), coalesce(host.run, home.run)
    FROM cluster_match_player AS member
    CROSS JOIN LATERAL (SELECT FROM cluster_player AS held WHERE held.player = member.player AND held.is_adopted
        AND (held.node, held.run) IS NOT DISTINCT FROM (_node, _run) LIMIT 1) AS own
    LEFT JOIN cluster_match AS played ON played.epoch = member.match_epoch AND played.nth = member.match_nth AND played.state = 1
    LEFT JOIN cluster_match AS host
        ON host.epoch = played.epoch AND host.nth = played.nth AND (host.node, host.run) <> (_node, _run)
    LEFT JOIN cluster_scene AS place ON played.epoch IS NULL AND place.name = member.home_scene
        AND cluster_is_alive(place.node, place.run, _at_ms)
    LEFT JOIN cluster_node AS home ON played.epoch IS NULL AND home.node = coalesce(place.node, member.home_node)
        AND home.node <> _node AND NOT home.is_dead AND NOT cluster_is_late(home.heartbeat_ms, _at_ms)
    WHERE member.is_travelling
$$;

-- The match to which each player has travelled (NULL: home) has to be its goal still: a match may have opened here meanwhile.
CREATE FUNCTION cluster_end_travels(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _nths BIGINT[], _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    PERFORM FROM cluster_match_player WHERE player = ANY(_players) ORDER BY player < 0, player FOR UPDATE;
    UPDATE cluster_match_player AS member SET is_travelling = FALSE FROM cluster_travels(_node, _run, _at_ms) AS travel
        JOIN unnest(_players, _epochs, _nths) AS arrived (player, epoch, nth) ON arrived.player = travel._player
        WHERE member.player = travel._player AND travel._to_node IS NULL
            AND (arrived.epoch, arrived.nth) IS NOT DISTINCT FROM (travel._match_epoch, travel._match_nth);
    DELETE FROM cluster_match_player WHERE player = ANY(_players) AND NOT is_travelling AND ticket_node IS NULL;
    RETURN 0;
END $$;

-- As before, but all players are locked in one order, as in the other transactions: two that wait for each other stop all requests of their
-- nodes about matches for a second, until the server notices it.
CREATE OR REPLACE FUNCTION cluster_abort_late(_node INTEGER, _run BIGINT, _matches_max BIGINT, _kept_ms BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _epochs BIGINT[];
    _nths BIGINT[];
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    -- Only matches of runs that are marked as dead or are not the newest. A late heartbeat alone is not enough: it may be in progress.
    SELECT array_agg(epoch), array_agg(nth) INTO _epochs, _nths FROM (
        SELECT epoch, nth FROM cluster_match AS own WHERE state < 2 AND NOT EXISTS (SELECT FROM cluster_node AS alive
                WHERE alive.node = own.node AND alive.run = own.run AND NOT alive.is_dead)
            ORDER BY epoch, nth LIMIT _matches_max FOR UPDATE SKIP LOCKED) AS late;
    PERFORM FROM cluster_match_player AS member JOIN unnest(_epochs, _nths) AS late (epoch, nth)
        ON member.match_epoch = late.epoch AND member.match_nth = late.nth
        ORDER BY member.player < 0, member.player FOR UPDATE OF member;
    PERFORM cluster_finish_match(epoch, nth, 3, _at_ms) FROM unnest(_epochs, _nths) AS late (epoch, nth);
    DELETE FROM cluster_match WHERE (epoch, nth) IN (SELECT epoch, nth FROM cluster_match
        WHERE state >= 2 AND over_ms <= cluster_now_ms(_at_ms) - _kept_ms ORDER BY over_ms, epoch, nth LIMIT _matches_max);
    RETURN 0;
END $$;

-- As before, but it locks the players of the ticket in that order, too.
CREATE OR REPLACE FUNCTION cluster_cancel_ticket(_node INTEGER, _run BIGINT, _ticket_node INTEGER, _ticket_run BIGINT, _ticket_nth BIGINT,
    _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _row cluster_ticket%ROWTYPE;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    IF (_node, _run) = (_ticket_node, _ticket_run) THEN
        INSERT INTO cluster_ticket_number AS last VALUES (_ticket_node, _ticket_run, _ticket_nth)
            ON CONFLICT (node) DO UPDATE SET run = EXCLUDED.run, nth = EXCLUDED.nth
            WHERE (last.run, last.nth) < (EXCLUDED.run, EXCLUDED.nth);
    END IF;
    SELECT * INTO _row FROM cluster_ticket WHERE node = _ticket_node AND run = _ticket_run AND nth = _ticket_nth FOR UPDATE;
    IF NOT FOUND OR _row.is_gone THEN
        RETURN 0;
    END IF;
    IF _row.match_epoch IS NOT NULL THEN
        RETURN 7;
    END IF;
    UPDATE cluster_ticket SET is_gone = TRUE, revision = NULL
        WHERE node = _ticket_node AND run = _ticket_run AND nth = _ticket_nth;
    PERFORM FROM cluster_match_player WHERE ticket_node = _ticket_node AND ticket_run = _ticket_run AND ticket_nth = _ticket_nth
        ORDER BY player < 0, player FOR UPDATE;
    -- Players that travel home continue.
    DELETE FROM cluster_match_player
        WHERE ticket_node = _ticket_node AND ticket_run = _ticket_run AND ticket_nth = _ticket_nth AND NOT is_travelling;
    UPDATE cluster_match_player SET ticket_node = NULL, ticket_run = NULL, ticket_nth = NULL
        WHERE ticket_node = _ticket_node AND ticket_run = _ticket_run AND ticket_nth = _ticket_nth;
    RETURN 0;
END $$;
